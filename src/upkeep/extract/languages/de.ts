import type { LanguageRules } from './language.ts'

export const german: LanguageRules = {
  code: 'de',
  markers:
    'ich mein meine meinen meinem meiner und der das ist nicht ein eine einen mit auf fur wir sie mir mich bitte habe haben wird werden sind den dem zu zum von vom auch aber nur kein keine keinen unser unsere es du dir wie kannst bin wurde als dann noch doch lieber uns im am beim seit bei',
  openings: 'ich|wir|mein|meine|unser|unsere|bitte|sie|er|es|du|ihr|das|kannst|konntest|nenn mich|merk dir|lass uns',
  commaOpenings:
    'ohne|die|der|wie|was|wer|wo|wenn|falls|weil|da|obwohl|damit|dass|niemals|nie|immer|kein|keine|aber|sondern|also|dann|nimm|nehmt|verwende|benutze|nutze|antworte|auf keinen fall|jetzt|schreib',
  conjunctions: 'aber|weil|obwohl|denn|sondern',
  coordinators: 'und|oder|dann|also',
  leadIns:
    'ich habe es mir anders uberlegt|ich habe meine meinung geandert|und|aber|also|dann|ach|na ja|ja|nein|ok|okay|hallo|hi|danke|ubrigens|nebenbei|eigentlich|doch|bitte|jetzt|nun|ab jetzt|ab sofort|in zukunft|kunftig|noch etwas|noch was|wie gesagt|zur info|info|korrektur|ich glaube|ich denke|ich meine|genauer gesagt|doch lieber',
  hypothetical: 'wenn|falls|angenommen|sofern|stell dir vor|nehmen wir an|gesetzt den fall|ob|vielleicht',
  questions:
    'kannst|konntest|konnen|konnten|soll|sollen|sollte|sollten|ist|sind|war|habe ich|hast|hat|haben wir|darf|wie|was|wer|wen|wem|wo|woher|wohin|wann|warum|wieso|weshalb|welche|welcher|welches|gibt es|wurdest|wurden sie',
  reporting:
    'sagt|sagte|meint|meinte|schreibt|schrieb|erzahlt|erzahlte|behauptet|behauptete|fragt|fragte|antwortet|antwortete|zum beispiel|z\\.? ?b\\.?|beispielsweise|beispiel|etwa',
  negation: 'nicht|nie|niemals|kein|keine|keinen|keinem|keiner|ohne|weder|nichts|allergisch|allergie|hasse|vermeide',
  wish: 'mag|liebe|bevorzuge|lieber|am liebsten|mochte|will|wunsche|bitte|hasse|nutze|benutze|verwende|immer|nie|niemals|kein|keine|nenn|antworte|schreib|brauche|vegan|vegetarisch|vegetarier|vegetarierin|veganer|veganerin|lieblings\\w{2,20}',
  change:
    'doch lieber|stattdessen|statt|nicht mehr|meine meinung geandert|anders uberlegt|umentschieden|korrektur|jetzt|inzwischen|mittlerweile|nun|neue|neuer|neues|umgezogen|verschoben|geandert|doch',
  notNames:
    'montag|dienstag|mittwoch|donnerstag|freitag|samstag|sonnabend|sonntag|januar|februar|marz|april|mai|juni|juli|august|september|oktober|november|dezember|jan|feb|mrz|apr|jun|jul|aug|sep|sept|okt|nov|dez|sie|ihnen|ihr|ihre|du|herr|frau|hallo|danke|bitte',
  capitalsAreNames: false,
  reminder:
    'merk(?:e|en sie)? (?:dir|euch|sich)(?: bitte)?(?: das:| folgendes:|,? dass|:)?|(?:denk|denke|denkt|denken sie)(?: bitte)? daran(?:,? dass|:)|vergiss(?: bitte)? nicht(?:,? dass|:)?|vergessen sie(?: bitte)? nicht(?:,? dass|:)?|(?:notier|notiere|notieren sie)(?: dir| sich)?(?: bitte)?(?:,? dass|:)?|behalte(?:n sie)?(?: bitte)? im (?:kopf|hinterkopf)(?:,? dass|:)|wichtig(?:e info| zu wissen)?:',
  bareReminder:
    '(?:merk|merke|notier|notiere) (?:dir )?(?:das|es)(?: bitte)?|vergiss das(?: bitte)? nicht|denk(?:e)? daran|behalte das im (?:kopf|hinterkopf)',
  nounFirst: false,
  possessive: 'meine?[nmrs]?|unsere?[nmrs]?',
  article: 'der|die|das',
  copula:
    '(?:ist|sind|war|lautet|lauten|hei(?:ss|ß)t|hei(?:ss|ß)en|liegt bei|liegt|betragt|wird|fallt auf|(?:wurde|hat sich) (?:auf|in|zu))(?: (?:jetzt|nun|aktuell|ab sofort|doch|eigentlich|inzwischen|am|der|die|das|den|um|bis|bei|in|auf))*',
  fillers:
    'neue[nmrs]?|aktuelle[nmrs]?|jetzige[nmrs]?|alte[nmrs]?|richtige[nmrs]?|genaue[nmrs]?|eigene[nmrs]?|letzte[nmrs]?|erste[nmrs]?',
  vagueNouns: 'problem|frage|fehler|idee|meinung|code|ziel|ergebnis|antwort|gefuhl|eindruck|vorschlag|plan',
  attributes: {
    phone: '(?:telefon|handy|mobil|ruf)?nummer|telefon|handy',
    email: 'e-?mail(?:-?adresse)?|mail(?:adresse)?',
    address: '(?:post|liefer|rechnungs|wohn)?adresse|anschrift',
    name: 'name',
    birthday: 'geburtstag|geburtsdatum',
    deadline: 'frist|abgabefrist|abgabetermin|abgabe|deadline|stichtag',
    appointment: 'termin|arzttermin|zahnarzttermin',
    meeting: 'besprechung|meeting|sitzung',
    budget: 'budget|etat|kostenrahmen',
    topic: 'thema|titel',
    order_number: 'bestellnummer|auftragsnummer',
    customer_number: 'kundennummer',
    booking_number: 'buchungsnummer|reservierungsnummer|buchungscode',
    invoice_number: 'rechnungsnummer',
    ticket_number: 'ticketnummer|vorgangsnummer|fallnummer',
    contract_number: 'vertragsnummer',
    iban: 'iban|kontonummer',
    job: 'beruf|job|stelle|position',
    employer: 'arbeitgeber|firma',
    home: 'wohnort',
    port: 'port',
    host: 'host|server|rechner',
    version: 'version',
    database: 'datenbank',
    blood_type: 'blutgruppe',
    wedding: 'hochzeit',
    flight: 'flug|ruckflug|hinflug',
    trip: 'reise|urlaub',
    password_hint: 'passworthinweis',
  },
  relations: {
    wife: 'frau|ehefrau',
    husband: 'mann|ehemann',
    partner: 'partner|partnerin|freundin',
    mother: 'mutter|mama',
    father: 'vater|papa',
    sister: 'schwester',
    brother: 'bruder',
    son: 'sohn',
    daughter: 'tochter',
    child: 'kind|kinder',
    friend: 'freund',
    boss: 'chef|chefin|vorgesetzte|vorgesetzter',
    colleague: 'kollege|kollegin',
    tutor: 'betreuer|betreuerin|trainer|trainerin|lehrer|lehrerin',
    doctor: 'arzt|arztin|hausarzt|hausarztin',
    dog: 'hund|hundin',
    cat: 'katze|kater',
  },
  subject: '(?:ich|wir) ',
  statements: [
    [
      'home',
      '(?:wohnt?e?n?|lebe?n?t?) (?:jetzt |nun |derzeit |aktuell |inzwischen )*(?:seit [\\w ]{1,20} (?:jetzt |nun |derzeit |aktuell |inzwischen )*)?(?:in|bei|auf) (.+)',
    ],
    ['home', '(?:bin|sind|ist) (?:jetzt |nun |gerade |vor kurzem |inzwischen )*nach (.+?) (?:um)?gezogen'],
    ['home', '(?:ziehen?|zieht) (?:jetzt |nun |bald )*nach (.+?)(?: um)?'],
    [
      'employer',
      'arbeite[nt]? (?:jetzt |nun |derzeit |nicht mehr )*(?:seit [\\w ]{1,20} (?:jetzt |nun |derzeit |nicht mehr )*)?(?:bei|fur) (.+)',
    ],
    ['job', 'arbeite[nt]? (?:jetzt |nun |derzeit )*als (.+)'],
    ['job', '(?:bin|ist) (?:jetzt |nun )*(?:von beruf )([a-z]+)'],
    ['origin', '(?:komme[nt]?|kommt|stamme[nt]?) (?:ursprunglich )?aus (.+)'],
    ['age', '(?:bin|ist) (?:jetzt |schon )*(\\d{1,3}(?: jahre(?: alt)?)?)'],
    ['birthplace', '(?:bin|ist|wurde) (?:am |in )(.+?) geboren'],
    ['allergy.*', '(?:bin|ist|sind) (?:stark |auch |sehr |nicht mehr )*allergisch (?:gegen|auf) (.+)'],
    ['allergy.*', '(?:bin |ist |sind )?(?:stark |auch )?gegen (.+) allergisch'],
    ['allergy.*', '(?:habe|hat) (?:auch )?eine (.+?allergie)'],
    ['allergy.*', 'vertrag(?:e|t) (?:kein|keine|keinen) (.+)'],
    [
      'medication.*',
      '(?:nehme|nimmt) (?:taglich |morgens |abends |jetzt |auch )*(.*?(?<!\\d)\\d+ ?(?:mg|ml|tabletten?).*|.+ (?:taglich|morgens|abends|ein))',
    ],
    [
      'condition.*',
      'hat es (?:(?:mit|an|in) (?:dem|der|den)|am|im) ((?:rucken|knien?|herz\\w{0,2}|schulter|hufte|bandscheiben?|kreuz|magen|lunge).*)',
    ],
    [
      'condition.*',
      '(?:habe|hat|leide[nt]? (?:an|unter)) (?:seit [\\w ]{1,20} )?((?:diabetes|asthma|adhs|migrane|epilepsie|bluthochdruck|zoliakie|rheuma|arthrose|neurodermitis).*)',
    ],
    [
      'diet',
      '(?:bin|ist|sind|esse|lebe|ernahre mich) (?:jetzt |nun |strikt |streng |nicht mehr )*((?:vegan|vegetarisch|vegetarier(?:in)?|veganer(?:in)?|glutenfrei|laktoseintolerant|laktosefrei|halal|koscher)(?: \\w+)?)',
    ],
    ['language_spoken.*', 'spr(?:eche|icht) (?:flie(?:ss|ß)end |auch |gut |etwas )*([a-z]+(?: und [a-z]+)?)'],
    [
      'marital_status',
      '(?:bin|sind) (?:jetzt |nun |nicht mehr )*(?:seit [\\w ]{1,20} (?:jetzt |nun |nicht mehr )*)?(verheiratet|geschieden|ledig|verlobt|verwitwet)',
    ],
    ['studies', 'studier(?:e|t) (?:derzeit |jetzt )*(.+)'],
    [
      'pets.*',
      '(?:habe|haben|hat) (?:einen|eine|zwei|drei|\\d) ((?:hund|hunde|katze|katzen|kater|kinder|sohne|tochter|kind|sohn)\\b.*)',
    ],
    ['budget', '(?:kann|konnen|will|wollen|mochte|mochten) (?:maximal|hochstens|bis zu|nicht mehr als) (.+?) ausgeben'],
    ['appointment.*', '(?:habe|haben) (?:am |um |morgen |einen |nachste woche )*(.*?termin.*)'],
    [
      'deadline.*',
      '(?:muss|mussen|soll|sollen) (?:[\\w ]{1,40} )?bis (?:zum |spatestens )*(?:.{0,30}\\d|montag|dienstag|mittwoch|donnerstag|freitag|samstag|sonntag|ende )(.*)',
    ],
  ],
  decisions:
    '(?:lass uns|lasst uns)|(?:wir|ich) (?:nehmen|nehme|haben uns (?:fur|entschieden)|habe mich (?:fur|entschieden)|entscheiden uns fur|entscheide mich fur|bleiben bei|bleibe bei|wechseln (?:zu|auf)|wechsle (?:zu|auf)|verwenden|machen es mit|setzen auf|buchen)|(?:nimm|nehmt|nehmen wir|dann)(?: doch)?(?: lieber)?',
  uses: '(?:wir|ich) (?:nutzen|nutze|benutzen|benutze|verwenden|verwende|arbeiten mit|arbeite mit|laufen auf|setzen auf|haben)|(?:das projekt|die app|das backend|das frontend|der server|die anwendung) (?:nutzt|benutzt|verwendet|lauft (?:auf|mit)|ist in)',
  prohibitions:
    'ohne (?!doute|probleme|souci|duda|problema|duvida|zweifel|problem|twijfel)|(?:bitte )?(?:nie|niemals|kein|keine|keinen|keinesfalls|auf keinen fall)(?: eine?n?)?|(?:ich|wir) (?:will|mochte|wollen|mochten) (?:bitte )?(?:kein|keine|keinen)|(?:verwende|benutze|nutze|schreib|schreibe|mach|nimm|verwenden sie)(?: bitte)? (?:nie|niemals|kein|keine|keinen)|vermeide|verzichte auf|(?:wir|du) (?:durfen|darfst|sollst|sollen) (?:nicht|nie|niemals|kein|keine|keinen)',
  demands:
    '(?:bitte )?immer|(?:verwenden?|benutzen?|nutzen?|schreiben?|schreib|antworten?|gib|geben|zeig|zeigen|formulieren?|fuge|machen?|mach|nennen?)(?: sie)?(?: mir)?(?: bitte)? (?:immer|stets|ab jetzt|nur)',
  limits: 'unter|maximal|hochstens|nicht mehr als|bis zu|mindestens|nicht langer als',
  units: 'wort(?:e|er|en|ern)?|zeichen|satze[n]?|seiten?|zeilen|minuten|stunden|tage|euro|prozent|punkte|absatze',
  preferences:
    '(?:ich|wir) (?:bevorzugen?|mag(?: lieber)?|mogen|liebe|hatten? lieber|mochte lieber|mochte am liebsten|hasse|ziehe vor)|mir (?:gefallt|ist lieber)|am liebsten (?:mag ich|ist mir|habe ich)',
  topics: [
    ['theme', '\\b(dunkl|hell|dunkel)(?:e|en|es|er)?[ -]?(?:modus|design|theme)'],
    [
      'language',
      '\\b(?:antworte?|schreib|schreibe|sprich|antworten sie)(?: mir)?(?: bitte)?(?: immer| nur)? (?:auf|in) (deutsch|englisch|franzosisch|spanisch|italienisch|portugiesisch|niederlandisch)',
    ],
    ['length', '\\b(kurze|knappe|ausfuhrliche|lange|detaillierte)n? (?:antworten|erklarungen)'],
    ['length', '\\b(?:fasse? dich|halte? dich|antworte)(?: bitte)? (kurz|knapp|ausfuhrlich)'],
    ['address_form', '\\b(?:bitte )?(duze|sieze|duzen|siezen)\\b'],
  ],
  habits:
    '(?:ich|wir) (?:kann|konnen|darf|durfen) (?:nur|nicht|kein|keine|keinen|leider nicht|leider nur) (?=\\w)|(?:ich|wir) (?:esse|essen|trinke|trinken|arbeite|arbeiten|mache|machen|verkaufe|verkaufen|fahre|fahren|fliege|fliegen) (?:nie|niemals|nur|kein|keine|keinen|nicht) (?=\\w)',
  lasting: 'ab jetzt|ab sofort|kunftig|in zukunft|jedes mal|bis auf weiteres',
  reschedules:
    '(?:wir|ich) (?:verschieben|verschiebe|verlegen|verlege|andern|andere|erhohen|erhohe|senken) (?:den |die |das |unseren |unsere |meinen |meine )?(?<noun>[\\w -]{2,40}?) (?:auf|vom [\\w. ]{1,20} auf) (?=.*(?:\\d|tag\\b|woch\\b))',
  newOne: '(?:die|der|das) neue (?:ist|lautet|heißt)',
  names:
    '(?:ich hei(?:ss|ß)e|mein name ist|(?:bitte )?nenn(?:t|en sie)? mich|ich bin (?:der|die)|du kannst mich)(?: einfach| bitte| jetzt| ab jetzt)*',
}
