"""What people put around a request without changing what it asks. Written for this project.

Training puts these words before or after a text and keeps its target, so that they weigh little in the mean.
"""

ENGLISH_BEFORE = """can you|could you|could you please|please|I want to|I need to|I would like to|I'd like to|I'm trying to|help me|help me to|how do I|how can I
|how to|is there a way to|is it possible to|let me|I have to|we need to|we want to|show me|tell me|give me|find me|get me|I am looking for|I'm looking for
|I'm interested in|I'm curious about|I want to know|I want to know about|I would like to know|can you tell me|could you tell me|do you know|can you show me
|can you give me|can you provide me with|could you provide me with|please provide|can you help me|can you find|I need information about|I need some information on
|what is|what are|what's|which|is there|are there any|can you suggest|can you recommend|could you recommend|I need help with|I need your help with|would you mind
|hey|hi|hello|ok|so|also|additionally|furthermore|moreover|and then|after that|finally|first|next|it would be great if you could|I'd appreciate it if you could
|I was wondering if you could|I'm working on a project and I need to|for my project I need to|for a presentation I need to|my boss asked me to|my friend asked me to
|a colleague told me to|my team wants to|our company needs to|my family and I want to|my friends and I are planning something and need to|as part of my research, I want to
|I'm writing an article and want to|I'm preparing a report, so I have to|today I need to|right now I want to|quickly|just|go ahead and|try to|make sure to|use a tool to
|a tool to|tool that can|tool for|function to|an API that lets me|which tool can|I'm a beginner and I want to|I'm not sure how to|I've been thinking about it and would like to
|in order to decide, I want to|before the meeting I need to|for a surprise, I need to|this weekend I want to|lately I have been meaning to|as a student, I need to|as a fan, I want to""".replace("\n", "").split("|")

ENGLISH_AFTER = """please|for me|thanks|thank you|right now|now|as soon as possible|if possible|today|for my project|for my team|for me please|, if you can|and let me know
|and tell me the result|in detail|with all the details|so that I can decide|as well|too|again|, it is important|, I would be grateful|. Thanks in advance|, it would be very helpful
|, please include the details|. Any help is welcome|, I don't know where to start|for our company|for my research|with the id 12345|with id abc-123|for the given id|called test
|named example|using the default settings|with the following parameters|from the last week|since yesterday|by the end of the day""".replace("\n", "").split("|")

BEFORE = {
    "lt": "ar gali|ar galėtum|ar galite|prašau|noriu|norėčiau|man reikia|reikia|padėk|padėk man|padėkite man|kaip|kaip man|kaip galiu|parodyk|pasakyk|duok|rask|ar galima|noriu sužinoti|norėčiau sužinoti|turiu|gal gali|kur galiu|kas yra|kokie yra|koks yra|leisk|labas|sveiki",
    "pl": "czy możesz|czy mógłbyś|proszę|chcę|chciałbym|chciałabym|muszę|potrzebuję|pomóż mi|jak|jak mogę|pokaż mi|pokaż|powiedz mi|daj mi|znajdź|czy można|chcę wiedzieć|czy da się|jaki jest|jakie są|cześć",
    "de": "kannst du|könntest du|können Sie|könnten Sie bitte|bitte|ich möchte|ich will|ich muss|ich brauche|hilf mir|wie kann ich|wie|zeig mir|zeige mir|zeige|sag mir|gib mir|finde|gibt es|ist es möglich|ich möchte wissen|welche|was ist|hallo",
    "es": "puedes|podrías|por favor|quiero|quisiera|me gustaría|necesito|tengo que|ayúdame a|cómo|cómo puedo|muéstrame|dime|dame|encuentra|es posible|quiero saber|hay alguna forma de|cuál es|cuáles son|qué|hola",
    "fr": "peux-tu|pourrais-tu|pouvez-vous|pourriez-vous|s'il te plaît|s'il vous plaît|je veux|je voudrais|j'aimerais|j'ai besoin de|je dois|aide-moi à|comment|comment puis-je|montre-moi|dis-moi|donne-moi|trouve|est-il possible de|je veux savoir|quel est|quels sont|bonjour",
    "it": "puoi|potresti|per favore|voglio|vorrei|ho bisogno di|devo|aiutami a|come|come posso|mostrami|dimmi|dammi|trova|è possibile|voglio sapere|qual è|quali sono|ciao",
    "pt": "você pode|podes|poderia|por favor|quero|gostaria de|preciso|preciso de|tenho que|ajude-me a|como|como posso|mostre-me|mostra-me|diga-me|dê-me|encontre|é possível|quero saber|qual é|quais são|olá",
    "nl": "kun je|kunt u|zou je|alsjeblieft|ik wil|ik wil graag|ik zou graag|ik moet|ik heb nodig|help me|hoe|hoe kan ik|laat me zien|toon mij|vertel me|geef me|vind|is het mogelijk|ik wil weten|wat is|welke|hallo",
    "ru": "можешь|можете|не мог бы ты|пожалуйста|я хочу|хочу|мне нужно|нужно|хотелось бы|помоги мне|помогите|как|как мне|как я могу|покажи|покажи мне|скажи|дай мне|найди|можно ли|хочу узнать|какой|какие|что такое|привет",
    "uk": "чи можеш|чи можете|чи міг би ти|будь ласка|я хочу|хочу|мені треба|мені потрібно|потрібно|хотілося б|допоможи мені|допоможіть|як|як мені|як я можу|покажи|покажи мені|скажи|дай мені|знайди|чи можна|хочу дізнатися|який|які|привіт",
    "cs": "můžeš|můžete|mohl bys|prosím|chci|chtěl bych|potřebuji|musím|pomoz mi|jak|jak mohu|ukaž mi|řekni mi|dej mi|najdi|je možné|chci vědět|jaký je|jaké jsou|ahoj",
    "sk": "môžeš|môžete|mohol by si|prosím|chcem|chcel by som|potrebujem|musím|pomôž mi|ako|ako môžem|ukáž mi|povedz mi|daj mi|nájdi|je možné|chcem vedieť|aký je|aké sú|ahoj",
    "hu": "tudnál|meg tudnád|tudsz|kérlek|kérem|szeretnék|szeretném|akarom|kell|segíts|hogyan|hogyan tudom|mutasd meg|mondd meg|adj|keress|lehetséges|szeretném tudni|mi a|melyik|szia",
    "sv": "kan du|skulle du kunna|snälla|jag vill|jag skulle vilja|jag behöver|jag måste|hjälp mig|hur|hur kan jag|visa mig|visa|berätta|ge mig|hitta|är det möjligt|jag vill veta|vad är|vilka|hej",
    "da": "kan du|kunne du|venligst|jeg vil|jeg vil gerne|jeg har brug for|jeg skal|hjælp mig|hvordan|hvordan kan jeg|vis mig|vis|fortæl mig|giv mig|find|er det muligt|jeg vil vide|hvad er|hvilke|hej",
    "nb": "kan du|kunne du|vennligst|jeg vil|jeg vil gjerne|jeg trenger|jeg må|hjelp meg|hvordan|hvordan kan jeg|vis meg|vis|fortell meg|gi meg|finn|er det mulig|jeg vil vite|hva er|hvilke|hei",
    "fi": "voitko|voisitko|ole hyvä|haluan|haluaisin|minun täytyy|tarvitsen|auta minua|miten|miten voin|näytä minulle|näytä|kerro|anna|etsi|onko mahdollista|haluan tietää|mikä on|mitkä ovat|hei",
    "et": "kas sa saad|kas sa saaksid|palun|ma tahan|ma tahaksin|sooviksin|mul on vaja|ma pean|aita mul|kuidas|kuidas ma saan|näita mulle|näita|ütle mulle|anna mulle|leia|kas on võimalik|tahan teada|mis on|millised on|tere",
    "lv": "vai vari|vai varētu|lūdzu|es gribu|gribu|es vēlos|vēlētos|man vajag|man nepieciešams|palīdzi man|kā|kā es varu|parādi man|parādi|pasaki man|dod man|atrodi|vai var|gribu zināt|kāds ir|kādi ir|sveiki",
    "ro": "poți|ai putea|puteți|te rog|vă rog|vreau să|aș vrea să|aș dori să|am nevoie de|trebuie să|ajută-mă să|cum|cum pot|arată-mi|spune-mi|dă-mi|găsește|este posibil|vreau să știu|care este|care sunt|salut",
    "bg": "можеш ли|можете ли|бихте ли|моля|искам да|бих искал да|трябва да|нужно ми е|помогни ми|как|как мога|покажи ми|кажи ми|дай ми|намери|възможно ли е|искам да знам|какъв е|какви са|здравей",
    "el": "μπορείς να|θα μπορούσες να|μπορείτε να|παρακαλώ|θέλω να|θα ήθελα να|πρέπει να|χρειάζομαι|βοήθησέ με να|πώς|πώς μπορώ να|δείξε μου|πες μου|δώσε μου|βρες|είναι δυνατόν|θέλω να μάθω|ποιο είναι|ποια είναι|γεια",
    "hr": "možeš li|možete li|molim|želim|htio bih|trebam|moram|pomozi mi|kako|kako mogu|pokaži mi|reci mi|daj mi|pronađi|je li moguće|želim znati|koji je|koje su|bok",
    "sr": "možeš li|možete li|molim|želim da|hteo bih da|treba mi|moram da|pomozi mi|kako|kako mogu|pokaži mi|reci mi|daj mi|nađi|можеш ли|молим|желим да|треба ми|морам да|како|како могу|покажи ми|реци ми|дај ми|нађи|који је",
    "bs": "možeš li|možete li|molim|želim|htio bih|trebam|moram|pomozi mi|kako|kako mogu|pokaži mi|reci mi|daj mi|pronađi|koji je|koje su",
    "mk": "можеш ли|можете ли|те молам|сакам да|би сакал да|треба да|ми треба|помогни ми|како|како можам|покажи ми|кажи ми|дај ми|најди|кој е|кои се",
    "sl": "ali lahko|bi lahko|prosim|želim|rad bi|rada bi|potrebujem|moram|pomagaj mi|kako|kako lahko|pokaži mi|povej mi|daj mi|poišči|ali je mogoče|želim vedeti|kateri je|kakšne so|živjo",
    "tr": "yapabilir misin|misin|lütfen|istiyorum|ihtiyacım var|gerekiyor|bana yardım et|nasıl|nasıl yapabilirim|bana göster|göster|söyle|bana ver|bul|mümkün mü|bilmek istiyorum|nedir|hangi|merhaba",
    "ca": "pots|podries|si us plau|vull|voldria|m'agradaria|necessito|he de|ajuda'm a|com|com puc|mostra'm|digues-me|dona'm|troba|és possible|vull saber|quin és|quins són|hola",
    "ja": "お願いします|してください|ください|したい|たいです|知りたい|教えて|教えてください|見せて|見せてください|どうやって|方法|できますか|してもらえますか|私は|必要があります|何ですか|の|を",
    "ko": "해주세요|주세요|할 수 있나요|하고 싶어요|하고 싶습니다|해야 합니다|필요해요|도와주세요|어떻게|어떻게 하나요|보여줘|보여주세요|알려줘|알려주세요|찾아줘|알고 싶어요|무엇인가요|안녕하세요",
    "zh": "请|请帮我|帮我|你能|能不能|可以|我想|我想要|我要|我需要|如何|怎么|怎样|给我|告诉我|显示|给我看|查一下|有没有|我想知道|是什么|有哪些|請|請幫我|你好",
    "id": "bisakah kamu|bisakah Anda|tolong|saya ingin|saya mau|saya perlu|saya harus|bantu saya|bagaimana|bagaimana cara|tunjukkan|beri tahu saya|beri saya|temukan|apakah bisa|saya ingin tahu|apa|apa saja|halo",
    "ms": "bolehkah anda|tolong|sila|saya mahu|saya ingin|saya perlu|bantu saya|bagaimana|bagaimana cara|tunjukkan|beritahu saya|beri saya|cari|apakah|hai",
    "vi": "bạn có thể|làm ơn|vui lòng|tôi muốn|tôi cần|tôi phải|giúp tôi|làm sao|làm thế nào để|cho tôi xem|cho tôi biết|cho tôi|tìm|có thể|tôi muốn biết|là gì|những|xin chào",
    "ar": "هل يمكنك|هل تستطيع|من فضلك|رجاء|أريد|أريد أن|أود|أود أن|أحتاج إلى|أحتاج|يجب أن|ساعدني في|كيف|كيف يمكنني|أرني|اعرض لي|أخبرني|أعطني|ابحث عن|هل يمكن|أريد أن أعرف|ما هو|ما هي|مرحبا",
    "he": "האם אתה יכול|אתה יכול|בבקשה|אני רוצה|הייתי רוצה|אני צריך|אני צריכה|עזור לי|איך|איך אני יכול|הראה לי|תראה לי|ספר לי|תן לי|מצא|האם אפשר|אני רוצה לדעת|מה|מהם|שלום",
    "fa": "می‌توانی|می‌توانید|لطفا|لطفاً|می‌خواهم|دوست دارم|نیاز دارم|باید|کمکم کن|چگونه|چطور|چطور می‌توانم|نشانم بده|به من بگو|به من بده|پیدا کن|آیا می‌شود|می‌خواهم بدانم|چیست|سلام",
    "ur": "کیا آپ|براہ کرم|میں چاہتا ہوں|مجھے چاہیے|مجھے ضرورت ہے|میری مدد کریں|کیسے|میں کیسے|مجھے دکھائیں|مجھے بتائیں|مجھے دیں|تلاش کریں|کیا ہے|کون سے",
    "hi": "क्या आप|कृपया|मैं चाहता हूँ|मैं चाहती हूँ|मुझे चाहिए|मुझे|मेरी मदद करें|कैसे|मैं कैसे|मुझे दिखाओ|मुझे दिखाएं|मुझे बताओ|मुझे बताएं|मुझे दें|खोजें|क्या है|कौन से|नमस्ते",
    "bn": "আপনি কি|দয়া করে|অনুগ্রহ করে|আমি চাই|আমার দরকার|আমাকে সাহায্য করুন|কিভাবে|কীভাবে|আমি কিভাবে|আমাকে দেখাও|আমাকে দেখান|আমাকে বলুন|আমাকে দিন|খুঁজুন|কি|কোনগুলো",
    "ta": "முடியுமா|தயவுசெய்து|நான் விரும்புகிறேன்|எனக்கு வேண்டும்|எனக்கு உதவுங்கள்|எப்படி|எவ்வாறு|எனக்குக் காட்டு|சொல்லுங்கள்|கொடுங்கள்|கண்டுபிடி|என்ன|எவை",
    "te": "మీరు|దయచేసి|నాకు కావాలి|నేను కోరుకుంటున్నాను|నాకు సహాయం చేయండి|ఎలా|నేను ఎలా|నాకు చూపించు|నాకు చెప్పండి|నాకు ఇవ్వండి|కనుగొనండి|ఏమిటి|ఏవి",
    "th": "ช่วย|ช่วยฉัน|กรุณา|โปรด|ฉันต้องการ|ผมต้องการ|อยาก|ฉันอยากรู้|คุณสามารถ|อย่างไร|วิธี|ทำอย่างไร|แสดงให้ฉันดู|บอกฉัน|ขอ|หา|คืออะไร|มีอะไรบ้าง|สวัสดี|หน่อย",
    "ka": "შეგიძლია|შეგიძლიათ|გთხოვ|გთხოვთ|მინდა|მსურს|მჭირდება|უნდა|დამეხმარე|როგორ|როგორ შემიძლია|მაჩვენე|მითხარი|მომეცი|იპოვე|რა არის|რომელი",
    "hy": "կարո՞ղ ես|կարո՞ղ եք|խնդրում եմ|ուզում եմ|կցանկանայի|ինձ պետք է|պետք է|օգնիր ինձ|ինչպես|ինչպե՞ս կարող եմ|ցույց տուր|ասա ինձ|տուր ինձ|գտիր|ի՞նչ է|որոնք են",
    "mr": "कृपया|मला हवे आहे|मला|मला मदत करा|कसे|मी कसे|मला दाखवा|मला सांगा|मला द्या|शोधा|काय आहे",
    "gu": "કૃપા કરીને|મારે|મને જોઈએ|મને મદદ કરો|કેવી રીતે|મને બતાવો|મને કહો|મને આપો|શોધો|શું છે",
    "kn": "ದಯವಿಟ್ಟು|ನನಗೆ ಬೇಕು|ನನಗೆ ಸಹಾಯ ಮಾಡಿ|ಹೇಗೆ|ನಾನು ಹೇಗೆ|ನನಗೆ ತೋರಿಸಿ|ನನಗೆ ಹೇಳಿ|ಕೊಡಿ|ಹುಡುಕಿ|ಏನು",
    "ml": "ദയവായി|എനിക്ക് വേണം|എനിക്ക്|എന്നെ സഹായിക്കൂ|എങ്ങനെ|എന്നെ കാണിക്കൂ|എന്നോട് പറയൂ|തരൂ|കണ്ടെത്തുക|എന്താണ്",
    "pa": "ਕਿਰਪਾ ਕਰਕੇ|ਮੈਂ ਚਾਹੁੰਦਾ ਹਾਂ|ਮੈਨੂੰ ਚਾਹੀਦਾ ਹੈ|ਮੇਰੀ ਮਦਦ ਕਰੋ|ਕਿਵੇਂ|ਮੈਨੂੰ ਦਿਖਾਓ|ਮੈਨੂੰ ਦੱਸੋ|ਕੀ ਹੈ",
    "eu": "mesedez|nahi dut|behar dut|lagundu|nola|erakutsi|esan|eman|aurkitu|zer da|zein da",
    "gl": "podes|poderías|por favor|quero|gustaríame|necesito|teño que|axúdame a|como|como podo|móstrame|dime|dáme|atopa|cal é",
    "ga": "an féidir leat|le do thoil|ba mhaith liom|teastaíonn uaim|caithfidh mé|cabhraigh liom|conas|taispeáin dom|inis dom|tabhair dom|cad é",
    "is": "getur þú|vinsamlegast|ég vil|mig langar að|ég þarf að|hjálpaðu mér|hvernig|hvernig get ég|sýndu mér|segðu mér|gefðu mér|finndu|hvað er",
    "sq": "a mund të|të lutem|ju lutem|dua të|do të doja të|më duhet|ndihmomë|si|si mund të|më trego|më jep|gjej|cili është",
    "be": "ці можаш|калі ласка|я хачу|хачу|мне трэба|дапамажы мне|як|як мне|пакажы|скажы|дай мне|знайдзі|які|якія",
    "kk": "өтінемін|мен қалаймын|маған керек|керек|көмектесші|қалай|маған көрсет|айтшы|бер|тап|қандай",
    "az": "zəhmət olmasa|istəyirəm|mənə lazımdır|mənə kömək et|necə|mənə göstər|mənə de|ver|tap|nədir|hansı",
    "uz": "iltimos|xohlayman|menga kerak|yordam ber|qanday|menga ko'rsat|ayt|ber|top|nima|qaysi",
    "af": "kan jy|asseblief|ek wil|ek wil graag|ek moet|help my|hoe|hoe kan ek|wys my|vertel my|gee my|vind|wat is",
    "sw": "tafadhali|naweza|ninataka|nahitaji|nisaidie|jinsi ya|vipi|nionyeshe|niambie|nipe|tafuta|ni nini",
    "tl": "maaari mo bang|pakiusap|gusto ko|gusto kong|kailangan ko|tulungan mo ako|paano|ipakita sa akin|sabihin mo|bigyan mo ako|hanapin|ano ang",
    "cy": "allwch chi|os gwelwch yn dda|rydw i eisiau|hoffwn i|mae angen i mi|helpwch fi|sut|dangoswch i mi|dywedwch wrthyf|beth yw",
    "ne": "कृपया|म चाहन्छु|मलाई चाहिन्छ|मलाई मद्दत गर्नुहोस्|कसरी|मलाई देखाउनुहोस्|मलाई भन्नुहोस्|के हो",
    "si": "කරුණාකර|මට ඕන|මට අවශ්‍යයි|මට උදව් කරන්න|කොහොමද|මට පෙන්වන්න|මට කියන්න|කුමක්ද",
    "km": "សូម|ខ្ញុំចង់|ខ្ញុំត្រូវការ|ជួយខ្ញុំ|របៀប|បង្ហាញខ្ញុំ|ប្រាប់ខ្ញុំ|អ្វី",
    "my": "ကျေးဇူးပြု၍|လိုချင်သည်|လိုအပ်သည်|ကူညီပါ|ဘယ်လို|ပြပါ|ပြောပြပါ|ဘာလဲ",
    "mn": "надад|би хүсэж байна|надад хэрэгтэй|туслаач|яаж|хэрхэн|надад харуул|хэлж өг|өг|ол|юу вэ",
    "eo": "ĉu vi povas|bonvolu|mi volas|mi ŝatus|mi bezonas|helpu min|kiel|montru al mi|diru al mi|donu al mi|trovu|kio estas",
}
