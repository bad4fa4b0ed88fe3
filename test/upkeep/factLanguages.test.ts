import { describe, expect, it } from 'vitest'
import { verifies } from '../requirements/verifies.ts'
import { currentFacts } from './conversationFacts.ts'

type Case = readonly [texts: readonly string[], expected: readonly string[]]

const cases: Readonly<Record<string, readonly Case[]>> = {
  German: [
    [['Ich wohne in Bern', 'Wir sind nach Basel gezogen'], ['home: Wir sind nach Basel gezogen']],
    [['Meine Bestellnummer lautet KX-7731.'], ['order_number: Meine Bestellnummer lautet KX-7731']],
    [
      ['Meine Telefonnummer ist 0171 2345678', 'Meine neue Nummer ist 0151 9876543'],
      ['phone: Meine neue Nummer ist 0151 9876543'],
    ],
    [
      ['Die Abgabefrist ist der 14. März', 'Die Abgabefrist wurde auf den 21. März verschoben'],
      ['deadline: Die Abgabefrist wurde auf den 21. März verschoben'],
    ],
    [['Wir nehmen Postgres', 'Ich habe es mir anders überlegt, nimm MySQL'], ['database: nimm MySQL']],
    [
      ['Ich bin allergisch gegen Erdnüsse', 'Ich bin auch allergisch gegen Latex'],
      ['allergy.erdnusse: Ich bin allergisch gegen Erdnüsse', 'allergy.latex: Ich bin auch allergisch gegen Latex'],
    ],
    [['Bitte halte die Antworten unter 100 Wörtern'], ['length: halte die Antworten unter 100 Wörtern']],
    [['Bitte verwende keine Semikolons'], ['constraints.semikolons: verwende keine Semikolons']],
    [['Mein Chef heißt Thomas Weber'], ['boss: Mein Chef heißt Thomas Weber']],
    [['Nenn mich Sam'], ['name: Sam']],
    [['Antworte bitte auf Deutsch'], ['language: Deutsch']],
    [['Ich arbeite bei Siemens', 'Ich arbeite jetzt bei Bosch'], ['employer: Ich arbeite jetzt bei Bosch']],
    [['Wenn ich in Rom wohnen würde …', 'Kannst du mir helfen?', 'Mein Problem ist die Datenbank'], []],
    [['Merk dir bitte, dass das Passwort am Kühlschrank hängt'], [': das Passwort am Kühlschrank hängt']],
  ],
  French: [
    [["J'habite à Lyon", 'Nous avons déménagé à Nantes'], ['home: Nous avons déménagé à Nantes']],
    [['Mon numéro de commande est le KX-7731'], ['order_number: Mon numéro de commande est le KX-7731']],
    [
      ['La réunion est lundi à 10 h', 'La réunion a été reportée à mercredi'],
      ['meeting: La réunion a été reportée à mercredi'],
    ],
    [['On part sur Postgres', 'Finalement, on prend MySQL'], ['database: on prend MySQL']],
    [
      ['Je suis allergique aux arachides', 'Je suis aussi allergique au latex'],
      ['allergy.arachides: Je suis allergique aux arachides', 'allergy.latex: Je suis aussi allergique au latex'],
    ],
    [['Réponds en moins de 100 mots'], ['length: Réponds en moins de 100 mots']],
    [['Je m’appelle Chloé Dubois'], ['name: Chloé Dubois']],
    [["Réponds en français, s'il te plaît"], ['language: français']],
    [
      ["Ma femme s'appelle Ana et mon chien s'appelle Rex"],
      ["wife: Ma femme s'appelle Ana", "dog.rex: mon chien s'appelle Rex"],
    ],
    [
      ['Je travaille chez Renault', 'Je ne travaille plus chez Renault'],
      ['employer: Je ne travaille plus chez Renault'],
    ],
    [["Si j'habitais à Rome", 'Peux-tu m’aider ?', 'Mon problème est la base de données'], []],
    [["N'oublie pas que le code de la porte est 4411"], [': le code de la porte est 4411']],
  ],
  Spanish: [
    [['Vivo en Madrid', 'Nos mudamos a Sevilla'], ['home: Nos mudamos a Sevilla']],
    [['Mi número de pedido es KX-7731'], ['order_number: Mi número de pedido es KX-7731']],
    [['Mi teléfono es 600 123 456', 'Mi nuevo número es 611 987 654'], ['phone: Mi nuevo número es 611 987 654']],
    [
      ['La fecha límite es el 14 de marzo', 'La fecha límite ha sido aplazada al 21 de marzo'],
      ['deadline: La fecha límite ha sido aplazada al 21 de marzo'],
    ],
    [['Vamos a usar Postgres', 'He cambiado de opinión: usa MySQL'], ['database: usa MySQL']],
    [
      ['Soy alérgica a los cacahuetes', 'También soy alérgica al látex'],
      ['allergy.cacahuetes: Soy alérgica a los cacahuetes', 'allergy.latex: soy alérgica al látex'],
    ],
    [['Respuestas de menos de 100 palabras, por favor'], ['length: Respuestas de menos de 100 palabras']],
    [['No uses puntos y coma'], ['constraints.puntos_coma: No uses puntos y coma']],
    [['Me llamo Lucía'], ['name: Lucía']],
    [['Mi mujer se llama Ana'], ['wife: Mi mujer se llama Ana']],
    [['Si viviera en Roma', '¿Puedes ayudarme?', 'Mi problema es la base de datos'], []],
    [['Recuerda que el código de la puerta es 4411'], [': el código de la puerta es 4411']],
  ],
  Portuguese: [
    [['Moro em Lisboa', 'Mudámo-nos para o Porto'], ['home: Mudámo-nos para o Porto']],
    [['O meu número de encomenda é KX-7731'], ['order_number: O meu número de encomenda é KX-7731']],
    [['O meu telefone é 912 345 678', 'O meu novo número é 933 444 555'], ['phone: O meu novo número é 933 444 555']],
    [
      ['O prazo é 14 de março', 'O prazo foi adiado para 21 de março'],
      ['deadline: O prazo foi adiado para 21 de março'],
    ],
    [['Vamos usar Postgres', 'Mudei de ideia: usa MySQL'], ['database: usa MySQL']],
    [
      ['Sou alérgica a amendoim', 'Também sou alérgica a látex'],
      ['allergy.amendoim: Sou alérgica a amendoim', 'allergy.latex: sou alérgica a látex'],
    ],
    [['Respostas com no máximo 100 palavras'], ['length: Respostas com no máximo 100 palavras']],
    [['Chamo-me Inês'], ['name: Inês']],
    [['A minha mulher chama-se Ana'], ['wife: A minha mulher chama-se Ana']],
    [['Trabalho na Galp', 'Agora trabalho na EDP'], ['employer: trabalho na EDP']],
    [['Se eu morasse em Roma', 'Você pode me ajudar?', 'O meu problema é a base de dados'], []],
    [['Lembre-se de que o código da porta é 4411'], [': o código da porta é 4411']],
  ],
  Dutch: [
    [['Ik woon in Utrecht', 'We zijn verhuisd naar Leiden'], ['home: We zijn verhuisd naar Leiden']],
    [['Mijn bestelnummer is KX-7731'], ['order_number: Mijn bestelnummer is KX-7731']],
    [
      ['Mijn telefoonnummer is 06 12345678', 'Mijn nieuwe nummer is 06 87654321'],
      ['phone: Mijn nieuwe nummer is 06 87654321'],
    ],
    [
      ['De deadline is 14 maart', 'De deadline is verschoven naar 21 maart'],
      ['deadline: De deadline is verschoven naar 21 maart'],
    ],
    [['Laten we Postgres gebruiken', 'Ik heb me bedacht, gebruik MySQL'], ['database: gebruik MySQL']],
    [
      ['Ik ben allergisch voor noten', 'Ik ben ook allergisch voor latex'],
      ['allergy.noten: Ik ben allergisch voor noten', 'allergy.latex: Ik ben ook allergisch voor latex'],
    ],
    [['Houd antwoorden onder de 100 woorden'], ['length: Houd antwoorden onder de 100 woorden']],
    [['Ik heet Sanne'], ['name: Sanne']],
    [['Mijn vrouw heet Ana'], ['wife: Mijn vrouw heet Ana']],
    [['Ik werk bij Philips', 'Ik werk nu bij ASML'], ['employer: Ik werk nu bij ASML']],
    [['Als ik in Rome woonde', 'Kun je me helpen?', 'Mijn probleem is de database'], []],
    [['Onthoud dat de sleutel onder de mat ligt'], [': de sleutel onder de mat ligt']],
  ],
}

for (const [language, rows] of Object.entries(cases))
  describe(`extractFacts in ${language}`, () => {
    for (const [texts, expected] of rows)
      verifies('K-03', `${JSON.stringify(texts)} › gives ${JSON.stringify(expected)}`, () =>
        expect(currentFacts(...texts)).toEqual(expected),
      )
  })

describe('extractFacts with several languages', () => {
  it('uses the language of the conversation for a message without frequent words', () =>
    expect(currentFacts('Ich wohne in Bern und arbeite bei der Bahn', 'Budget: 500 Euro')).toContain(
      'budget: Budget: 500 Euro',
    ))
  it('recognises each message by itself', () =>
    expect(currentFacts('I live in Oslo', 'Wir sind nach Basel gezogen')).toEqual([
      'home: Wir sind nach Basel gezogen',
    ]))
})
