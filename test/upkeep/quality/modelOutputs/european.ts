import type { RecordedDialogue } from './recorded.ts'

export const umzug: RecordedDialogue = {
  name: 'a move in German',
  turns: [
    [
      'user',
      'Hallo, ich ziehe am 1. August von Bremen nach Leipzig um und brauche ein Angebot. Die Wohnung hat 72 Quadratmeter.',
    ],
    ['assistant', 'Gern. In welchem Stock liegen die Wohnungen, und gibt es einen Aufzug?'],
    [
      'user',
      'Die alte Wohnung liegt im dritten Stock ohne Aufzug, die neue im Erdgeschoss. Das Klavier bleibt hier, bitte nicht mitnehmen.',
    ],
    ['assistant', 'Verstanden. Wir rechnen mit 28 Kubikmetern und drei Helfern. Das kostet 1.450 Euro.'],
    ['user', 'Ist das Einpacken der Küche dabei? Ich möchte auf keinen Fall mehr als 1.600 Euro ausgeben.'],
    ['assistant', 'Das Einpacken der Küche kostet 120 Euro zusätzlich, zusammen also 1.570 Euro.'],
    ['user', 'Einverstanden. Meine Kundennummer ist KD-5520, mein Name ist Jonas Weber.'],
    ['assistant', 'Danke, Herr Weber. Wir kommen am 1. August um 7:30 Uhr.'],
    [
      'user',
      'Ich muss den Termin ändern: Der Vermieter übergibt die Schlüssel erst am 3. August. Bitte am 3. August kommen.',
    ],
    [
      'assistant',
      'Kein Problem, der 3. August um 7:30 Uhr ist eingetragen. Bitte beantragen Sie das Halteverbot bei der Stadt.',
    ],
    ['user', 'Das Halteverbot ist schon beantragt. Telefonisch erreichen Sie mich unter 0171 5550199.'],
  ],
  outputs: [
    {
      manner: 'plain narrative in German',
      reply:
        'Jonas Weber (Kundennummer KD-5520) zieht von Bremen nach Leipzig um; der Termin wurde vom 1. August auf den 3. August um 7:30 Uhr verschoben. Die Wohnung hat 72 Quadratmeter und liegt im dritten Stock ohne Aufzug. Das Klavier bleibt in Bremen und wird nicht mitgenommen. Der Umzug kostet 1.450 Euro plus 120 Euro für das Einpacken der Küche, zusammen 1.570 Euro; mehr als 1.600 Euro möchte er auf keinen Fall ausgeben. Das Halteverbot ist beantragt. Telefon: 0171 5550199.',
    },
    {
      manner: 'bullets with a German preamble',
      reply: `Hier ist die Zusammenfassung:

- Umzug von Bremen nach Leipzig am 03.08. um 7:30 Uhr (statt am 01.08.)
- Kunde: Jonas Weber, KD-5520, Tel. +49 171 5550199
- 72 Quadratmeter, dritter Stock ohne Aufzug, 28 Kubikmeter, 3 Helfer
- Klavier nicht mitnehmen
- Preis: 1450 € + 120 € für das Einpacken der Küche = 1570 €, nicht mehr als 1600 €
- Halteverbot ist beantragt`,
    },
    {
      manner: 'terse notes in German',
      reply:
        'Umzug Bremen nach Leipzig am 3. August, 7:30 Uhr, nicht mehr am 1. August. Kundennummer KD-5520, Jonas Weber. 1.570 Euro mit Einpacken der Küche, auf keinen Fall mehr als 1.600 Euro. Klavier nicht mitnehmen. Halteverbot beantragt.',
    },
    {
      manner: 'the former date',
      unfaithful: 'stale value',
      reply:
        'Jonas Weber (Kundennummer KD-5520) zieht am 1. August um 7:30 Uhr von Bremen nach Leipzig um. Die Wohnung hat 72 Quadratmeter und liegt im dritten Stock ohne Aufzug. Das Klavier wird nicht mitgenommen. Der Umzug kostet mit dem Einpacken der Küche 1.570 Euro, auf keinen Fall mehr als 1.600 Euro. Das Halteverbot ist beantragt.',
    },
    {
      manner: 'the piano is taken along',
      unfaithful: 'dropped negation',
      reply:
        'Jonas Weber (Kundennummer KD-5520) zieht am 3. August um 7:30 Uhr von Bremen nach Leipzig um. Das Klavier bitte mitnehmen. Der Umzug kostet mit dem Einpacken der Küche 1.570 Euro. Die Wohnung hat 72 Quadratmeter. Das Halteverbot ist beantragt.',
    },
    {
      manner: 'a wrong price',
      unfaithful: 'wrong number',
      reply:
        'Jonas Weber (Kundennummer KD-5520) zieht am 3. August um 7:30 Uhr von Bremen nach Leipzig um. Das Klavier wird nicht mitgenommen. Der Umzug kostet mit dem Einpacken der Küche 1.750 Euro, auf keinen Fall mehr als 1.600 Euro. Die Wohnung hat 72 Quadratmeter. Das Halteverbot ist beantragt.',
    },
    {
      manner: 'the cities swapped',
      unfaithful: 'swapped value',
      undetected: 'In German all nouns have capitals, so the two cities are not recognised as names.',
      reply:
        'Jonas Weber (Kundennummer KD-5520) zieht am 3. August um 7:30 Uhr von Leipzig nach Bremen um. Das Klavier wird nicht mitgenommen. Der Umzug kostet mit dem Einpacken der Küche 1.570 Euro, auf keinen Fall mehr als 1.600 Euro. Das Halteverbot ist beantragt.',
    },
  ],
}

export const anniversaire: RecordedDialogue = {
  name: 'a dinner in French',
  turns: [
    [
      'user',
      'Bonjour, je voudrais organiser un dîner pour les 60 ans de ma mère, le 17 octobre, pour douze personnes.',
    ],
    ['assistant', 'Avec plaisir. Préférez-vous un restaurant ou un traiteur à la maison ?'],
    ['user', 'Un restaurant à Nantes, avec une salle privée. Le budget est de 45 € par personne, sans le vin.'],
    ['assistant', 'Le Bistrot des Quais a une salle privée et un menu à 42 €.'],
    ['user', 'Très bien. Pas de fruits de mer : mon frère Luc est allergique. Ma tante Odile ne mange pas de viande.'],
    ['assistant', 'Je le note. Faut-il prévoir un gâteau ?'],
    ['user', "Oui, un gâteau au chocolat. Ma mère s'appelle Simone. Il ne faut pas lui en parler, c'est une surprise."],
    ['assistant', 'Entendu. La table est réservée à 20 h sous la référence RZ-4410.'],
    ['user', 'Finalement nous serons quatorze, deux cousins viennent aussi. Mon téléphone : 06 12 34 56 78.'],
    [
      'assistant',
      'La réservation est modifiée pour quatorze personnes. Un acompte de 100 € est demandé avant le 1er octobre.',
    ],
  ],
  outputs: [
    {
      manner: 'plain narrative in French',
      reply:
        "L'utilisateur organise un dîner surprise à Nantes pour les 60 ans de sa mère Simone, le 17 octobre à 20 h, au Bistrot des Quais, dans une salle privée (référence RZ-4410). Ils seront quatorze au lieu de douze. Menu à 42 €, budget de 45 € par personne sans le vin. Pas de fruits de mer, car Luc est allergique, et Odile ne mange pas de viande. Gâteau au chocolat. Il ne faut pas en parler à Simone. Acompte de 100 € avant le 1er octobre.",
    },
    {
      manner: 'bullets with a French preamble and an offer',
      reply: `Bien sûr ! Voici le résumé :

- Dîner surprise pour les 60 ans de Simone le 17/10 à 20:00, Nantes, Bistrot des Quais, salle privée, réf. RZ-4410
- 14 personnes (12 au départ), menu à 42 €, soit 588 € au total sans le vin
- Pas de fruits de mer (Luc allergique), Odile ne mange pas de viande
- Gâteau au chocolat, ne pas en parler à Simone
- Acompte de 100 € avant le 1er octobre, téléphone 0612345678

N'hésitez pas si vous voulez plus de détails.`,
    },
    {
      manner: 'the former number of guests',
      unfaithful: 'stale value',
      reply:
        "L'utilisateur organise un dîner surprise à Nantes pour les 60 ans de sa mère Simone, le 17 octobre à 20 h, pour douze personnes, au Bistrot des Quais (référence RZ-4410). Menu à 42 €. Pas de fruits de mer, car Luc est allergique, et Odile ne mange pas de viande. Gâteau au chocolat. Il ne faut pas en parler à Simone.",
    },
    {
      manner: 'the guests swapped',
      unfaithful: 'swapped person',
      reply:
        "L'utilisateur organise un dîner surprise à Nantes pour les 60 ans de sa mère Simone, le 17 octobre à 20 h, pour quatorze personnes, au Bistrot des Quais (référence RZ-4410). Pas de fruits de mer, car Odile est allergique. Luc ne mange pas de viande. Gâteau au chocolat. Il ne faut pas en parler à Simone.",
    },
    {
      manner: 'a wrong deposit',
      unfaithful: 'wrong number',
      reply:
        "L'utilisateur organise un dîner surprise à Nantes pour les 60 ans de sa mère Simone, le 17 octobre à 20 h, pour quatorze personnes, au Bistrot des Quais (référence RZ-4410). Pas de fruits de mer, car Luc est allergique. Odile ne mange pas de viande. Acompte de 150 € avant le 1er octobre. Il ne faut pas en parler à Simone.",
    },
    {
      manner: 'the beginning only',
      unfaithful: 'truncated',
      reply: "L'utilisateur organise",
    },
  ],
}
