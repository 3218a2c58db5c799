"""Reference vectors: reference.py MODEL OUT.json

For each text the token ids and the unit vector that model2vec gives, for readers of the model to be held to.
"""

import json
import sys

from model2vec import StaticModel

TEXTS = """Create a new calendar event
list all open issues in the repository
can you show me the weather in Vilnius for tomorrow, please?
get_pull_request_diff
readTextFile
Delete the row with id 42 from the table
K8S pods — restart them!
CAFÉ naïve Ångström
café
ﬁne ligatures and ½ fractions ①②③
Full-width ＡＢＣ　１２３
zero​width‌joiners‍here
tabs	and
newlines   and   spaces

    
!!! ??? ...
🙂 send an emoji 👩‍💻
a
İstanbul'da hava nasıl?
STRASSE Straße straße
ΟΔΟΣ οδός Οδός
Sukurk naują kalendoriaus įvykį
parodyk visus neperskaitytus laiskus
Žiūrėti nuotraukas
ištrink failą iš debesies
Utwórz nowe zdarzenie w kalendarzu
pokaż listę plików w folderze
Erstelle einen neuen Kalendereintrag
Wie lösche ich eine Datei?
Crea un nuevo evento en el calendario
¿Qué tiempo hará mañana?
Crée un nouvel événement dans le calendrier
Crea un nuovo evento nel calendario
Criar um novo evento no calendário
Maak een nieuwe afspraak in de agenda
Создать новое событие в календаре
Створити нову подію в календарі
Vytvořit novou událost v kalendáři
Új esemény létrehozása a naptárban
Skapa en ny kalenderhändelse
Luo uusi kalenteritapahtuma
Loo uus kalendrisündmus
Izveidot jaunu kalendāra notikumu
Creează un eveniment nou în calendar
Създаване на ново събитие в календара
Δημιουργία νέου συμβάντος ημερολογίου
Takvimde yeni etkinlik oluştur
Tạo sự kiện lịch mới
Buat acara kalender baru
カレンダーに新しい予定を作成する
ファイルを削除してください
캘린더에 새 일정을 만들어 주세요
在日历中创建新事件
查詢明天的天氣
إنشاء حدث جديد في التقويم
احذف الملف من المجلد
צור אירוע חדש ביומן
یک رویداد جدید در تقویم ایجاد کن
می‌خواهم پرونده را حذف کنم
कैलेंडर में नया कार्यक्रम बनाएं
ক্যালেন্ডারে একটি নতুন ইভেন্ট তৈরি করুন
நாட்காட்டியில் புதிய நிகழ்வை உருவாக்கு
క్యాలెండర్‌లో కొత్త ఈవెంట్ సృష్టించండి
สร้างกิจกรรมใหม่ในปฏิทิน
کیلنڈر میں نیا واقعہ بنائیں
შექმენით ახალი მოვლენა კალენდარში
Ստեղծել նոր իրադարձություն օրացույցում""".split("\n")


def main(folder, out):
    model = StaticModel.from_pretrained(folder)
    texts = TEXTS + ["", "long request " * 300]
    rows = []
    for text in texts:
        vector = model.encode([text])[0]
        ids = model.tokenize([text])[0]
        rows.append({"text": text, "ids": [int(i) for i in ids], "vector": [round(float(x), 6) for x in vector]})
    json.dump(rows, open(out, "w", encoding="utf-8"), ensure_ascii=False, indent=0)
    print(len(rows), "references")


if __name__ == "__main__":
    main(*sys.argv[1:3])
