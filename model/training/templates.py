"""Tool-like English of our own: everyday and professional things, what one does with them, and how people ask.

`texts()` draws a fixed set of descriptions and requests. Nothing here is taken from a catalogue of tools.
"""

import random

# domain: things of it; each thing gets several verbs.
THINGS = {
    "weather": "weather forecast, current weather, hourly forecast, air quality, humidity and wind speed, severe weather alerts, sunrise and sunset times, tide times, historical weather data, pollen count, UV index, marine forecast",
    "finance": "stock price, exchange rate, cryptocurrency price, market news, company financials, balance sheet, earnings calendar, dividend history, bank account balance, transaction history, interest rates, commodity prices, inflation data, stock chart, portfolio value, credit score, loan offers, mortgage payment, tax estimate, invoice, receipt, refund, subscription plan, payment link, currency conversion",
    "sport": "football match results, live scores, league standings, player statistics, team roster, match schedule, betting odds, player transfers, Formula 1 race results, tennis rankings, basketball games, cricket scores, golf leaderboard, coach and referee of a match, upcoming fixtures, head to head record",
    "travel": "flights, hotel rooms, car rentals, train timetable, bus routes, flight status, airport information, visa requirements, travel itinerary, tourist attractions, vacation rentals, boarding pass, seat map, ferry crossings, baggage rules, road trip route",
    "places": "nearby restaurants, restaurant menu, table reservation, postal code, geographic coordinates, address of a place, driving directions, distance between two cities, street map, time zone, country information, population of a city, opening hours, business reviews, parking spaces, charging stations, public holidays",
    "food": "recipes, recipe ingredients, nutrition facts, calories of a meal, cocktail recipes, wine pairings, meal plan, grocery list, food allergens, food delivery order, random recipe",
    "film and television": "movie details, movie reviews, TV show episodes, film cast and crew, movie trailers, streaming availability, box office, upcoming movies, anime information, actor filmography, celebrity biography, TV schedule",
    "music": "songs, lyrics, album tracks, artist biography, playlist, concert tickets, music charts, radio stations, podcast episodes, audio file, music genre, guitar chords, similar artists",
    "books and learning": "book details, book summary, author biography, online courses, dictionary definition, synonyms, quotes, trivia questions, flashcards, quiz, research papers, citations, university rankings, job interview questions, word of the day, grammar mistakes",
    "news": "news headlines, breaking news, newspaper articles, blog posts, RSS feed, trending topics, press releases, article text, news about a company",
    "social media": "user profile, followers, posts, comments, hashtags, direct messages, video statistics, channel subscribers, live stream, trending videos, profile picture, story highlights, likes of a post, influencer profile, community members",
    "shopping": "products, product reviews, product price, best deals, discount coupons, shopping cart, order status, package tracking, product availability, seller information, wish list, return label, gift ideas, price history, product categories, store inventory, barcode",
    "health": "symptoms of a disease, medicine information, drug interactions, workout plan, exercises for a muscle group, body mass index, heart rate data, sleep data, hospital beds, doctor appointment, vaccination statistics, medical records, meditation session, step count",
    "games": "video games, game achievements, game leaderboards, player rank, chess puzzle, free games, game servers, card deck, dice roll, jokes, riddles, horoscope, random fact, memes, lottery results, tarot card",
    "jobs and companies": "job postings, salary estimates, company profile, employee directory, resume, contact details of a person, email address of a company, customer record, sales lead, deal pipeline, vacation request, time sheet, payroll, expense report, candidate, interview",
    "language": "translation, language of a text, summary of a document, sentiment of a text, spelling errors, keywords of a text, paraphrase, readable text of a web page, subtitles, speech transcript, spoken audio of a text, profanity in a text, plagiarism, named entities",
    "images and files": "image, background of an image, QR code, thumbnail, screenshot of a web page, PDF file, video clip, GIF, photo album, image caption, faces in a photo, logo, colour palette, chart, diagram, slide deck, spreadsheet, scanned document, zip archive, audio recording, 3D model, stock photos",
    "mail and calendar": "email, unread messages, email draft, email attachment, mail label, calendar event, meeting invitation, free time slots, reminder, contact, mailing list, out of office reply, newsletter, calendar of a colleague, recurring meeting",
    "chat": "chat message, channel, group conversation, message reaction, thread reply, user status, voice call, video meeting, text message, phone call, voicemail, push notification, poll, emoji",
    "tasks and notes": "task, to-do list, note, project board, deadline, milestone, sprint, bug ticket, checklist, knowledge base page, comment on a task, time entry, task assignee, subtask, tag, wiki page, workspace, form responses",
    "home": "lights, thermostat, front door lock, security camera, vacuum cleaner, washing machine, blinds, speaker volume, alarm, timer, television, room temperature, energy use, garage door, garden watering, doorbell, smart plug, scene",
    "files": "file, folder, file contents, lines of a text file, shared link, file permissions, recently changed files, disk usage, directory tree, backup, file version, storage quota, several files at once, file metadata, duplicate files, symbolic link",
    "code": "source code, repository, branch, commit, pull request, merge request, code review, issue, release, tag, continuous integration run, build log, failing test, code search results, package version, dependency, vulnerability, stack trace, code snippet, diff, git history, uncommitted changes, fork, webhook, deployment, environment variable, feature flag, linter warnings, documentation of a library, symbol definition, references to a function, breakpoint",
    "data": "database table, SQL query, database schema, row, column, index, search results, document collection, vector store, data set, CSV file, pivot table, report, dashboard, metric, data pipeline, stream, message queue, cache key, graph node, knowledge graph relation, JSON document, backup of a database, slow queries",
    "servers": "virtual machine, container, container image, cluster, service logs, load balancer, domain name, DNS record, TLS certificate, firewall rule, IP address, network, server metrics, incident, alert rule, on-call schedule, cron job, secret, API key, user account, access token, role, storage bucket, serverless function, queue, autoscaling group, uptime check, error rate, trace, namespace, node, volume",
    "web": "web page, links of a page, web search results, website traffic, search engine ranking, browser tab, form field, button on a page, cookies, page title, HTML of a page, network requests of a page, console messages, short link, domain owner, website technologies, sitemap, captcha, page screenshot, mouse pointer, keyboard key, drop-down option, file upload",
    "security": "leaked passwords, malware scan, phishing site, spam score, disposable email address, two-factor code, audit log, permission, login attempts, IP reputation, encryption key, blocked user, sanctions list, fraud risk",
    "marketing and design": "campaign, audience segment, advertisement, landing page, conversion rate, survey, keyword ideas, brand mention, design file, design component, layer, font, icon, animation, survey answers, link preview, customer feedback",
    "money matters of a shop": "customer, order, product catalogue, price list, coupon, shipping rate, warehouse stock, supplier, purchase order, gift card, tax rate, payment method, dispute, payout, billing address, delivery date",
    "maths and science": "equation, unit conversion, prime numbers, random number, statistics of numbers, derivative, matrix, molecule, chemical element, protein structure, gene, star map, asteroid data, earthquake data, satellite position, planet, formula plot, date difference, current time, checksum, regular expression, UUID",
    "government and land": "laws, court cases, election results, census data, vehicle registration, real estate listings, house price estimate, zoning map, crime statistics, parliament members, patents, public tenders, train delays, traffic conditions, bike sharing stations, fuel prices, license plate, VIN number",
}
VERBS = {
    "read": "get|retrieve|fetch|show|list|find|search for|look up|check|view|read|return|display|query|browse|see",
    "make": "create|add|generate|make|set up|register|schedule|write|upload|start|open|insert|publish|send",
    "change": "update|edit|change|modify|rename|move|set|configure|replace|assign|share|copy|resize|convert|merge",
    "end": "delete|remove|cancel|close|archive|stop|clear|disable|unsubscribe from|revoke|reject|undo",
    "think": "compare|analyze|summarize|count|calculate|monitor|export|download|validate|predict|recommend|sort|filter|track|explain|translate",
}
TAILS = "by id|by name|for a given date|for a city|of a user|in a project|from a URL|with filters and paging|in the last 24 hours|for a specific country|sorted by date|in bulk|as JSON|by keyword|for the current user|between two dates".split("|")


def third(verb):
    head, _, rest = verb.partition(" ")
    if head.endswith(("s", "sh", "ch", "x")):
        head += "es"
    elif head.endswith("y") and head[-2] not in "aeiou":
        head = head[:-1] + "ies"
    else:
        head += "s"
    return f"{head} {rest}".strip()


def texts():
    source = random.Random(0)
    verbs = {kind: words.split("|") for kind, words in VERBS.items()}
    drawn = {}
    for domain, things in THINGS.items():
        for thing in things.split(", "):
            drawn[thing] = None
            drawn[f"{domain}: {thing}"] = None
            for kind, count in (("read", 5), ("make", 2), ("change", 2), ("end", 2), ("think", 3)):
                for verb in source.sample(verbs[kind], count):
                    tail = source.choice(TAILS) if source.random() < 0.35 else ""
                    article = source.choice(["", "the ", "a ", "all ", "my ", "new "])
                    drawn[f"{verb} {article}{thing} {tail}".strip().replace("  ", " ")] = None
                    if source.random() < 0.5:
                        drawn[f"{third(verb).capitalize()} {source.choice(['', 'the ', 'one or more '])}{thing} {tail}".strip() + "."] = None
            for frame in source.sample(FRAMES, 4):
                drawn[frame.format(thing)] = None
    return list(drawn)


FRAMES = [
    "what is the {}?", "I want to know about {}", "where can I find {}?", "tell me more about {}", "is there any {} available?", "how do I get {}?",
    "I need {} for my trip", "give me the latest {}", "which {} is the best?", "{} near me", "how many {} are there?", "has the {} changed since yesterday?",
    "who made this {}?", "{} please", "can I see {} again?", "recommend some {}", "details of {}", "the {} does not work, what can I do?",
]


if __name__ == "__main__":
    import json

    found = texts()
    print(len(found), json.dumps(random.Random(1).sample(found, 30), indent=0))
