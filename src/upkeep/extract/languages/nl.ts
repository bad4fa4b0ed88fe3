import type { LanguageRules } from './language.ts'

export const dutch: LanguageRules = {
  code: 'nl',
  markers:
    'ik mijn het een en niet voor op wij je jij aan van te dat ben heb heeft hebben onze ons geen maar ook naar nog bij uit zijn kun alstublieft alsjeblieft graag laten de ze hij mijn toch',
  openings:
    'ik|wij|we|mijn|onze|ons|alsjeblieft|alstublieft|graag|hij|zij|ze|jij|je|het|dat|kun|kan|noem me|onthoud|laten we',
  commaOpenings:
    'zonder|de|hoe|wat|wie|waar|als|indien|omdat|hoewel|zodat|nooit|altijd|geen|maar|dus|dan|gebruik|neem|kies|nu',
  conjunctions: 'maar|omdat|hoewel|want',
  coordinators: 'en|of|dan|dus',
  leadIns:
    'ik heb me bedacht|ik ben van gedachten veranderd|en|maar|dus|dan|oh|ja|nee|ok|oke|hallo|hoi|hi|bedankt|dank je|trouwens|overigens|eigenlijk|toch|alsjeblieft|alstublieft|graag|nu|vanaf nu|voortaan|in het vervolg|zoals gezegd|ter info|info|correctie|ik denk|ik bedoel|ik geloof|toch maar',
  hypothetical: 'als|indien|stel|stel dat|mocht|of|misschien|wanneer',
  questions:
    'kun|kan|kunt|zou|zal|moet|mag|is|zijn|was|heb|heeft|wil je|hoe|wat|wie|waar|wanneer|waarom|welke|welk|hoeveel',
  reporting:
    'zegt|zei|schrijft|schreef|vertelt|vertelde|beweert|beweerde|vraagt|vroeg|antwoordt|antwoordde|bijvoorbeeld|bijv\\.?|bv\\.?|voorbeeld|zoals',
  negation: 'niet|nooit|geen|zonder|niets|noch|allergisch|allergie|haat|vermijd',
  wish: 'hou van|houd van|liever|graag|liefst|wil|wens|alsjeblieft|haat|gebruik|altijd|nooit|geen|noem|antwoord|schrijf|voorkeur|vegan|veganist|vegetarier|vegetarisch|lievelings\\w{2,20}|favoriete',
  change:
    'toch liever|in plaats van|in plaats daarvan|niet meer|niet langer|van gedachten veranderd|me bedacht|correctie|nu|inmiddels|nieuwe|nieuw|verhuisd|verplaatst|verschoven|gewijzigd|toch|eigenlijk',
  notNames:
    'maandag|dinsdag|woensdag|donderdag|vrijdag|zaterdag|zondag|januari|februari|maart|april|mei|juni|juli|augustus|september|oktober|november|december|jan|feb|mrt|apr|jun|jul|aug|sep|sept|okt|nov|dec|meneer|mevrouw|hallo|hoi|bedankt|nederlands|engels|duits|frans',
  capitalsAreNames: true,
  reminder:
    'onthoud(?:t)?(?: alsjeblieft| alstublieft| goed| even)*(?: dat|:)?|vergeet(?: alsjeblieft| alstublieft)? niet(?: dat|:)|(?:noteer|schrijf op)(?: alsjeblieft| even)?(?: dat|:)?|houd? (?:er )?rekening mee(?: dat|:)|denk eraan(?: dat|:)|belangrijk(?:e info| om te weten)?:',
  bareReminder:
    'onthoud (?:dat|dit)(?: alsjeblieft| alstublieft| goed| even)?|vergeet (?:dat|dit) niet|noteer (?:dat|dit)(?: alsjeblieft| even)?',
  nounFirst: false,
  possessive: 'mijn|onze|ons',
  article: 'de|het',
  copula:
    '(?:is|zijn|was|wordt|luidt|heet|bedraagt|valt op|(?:is|werd) (?:verplaatst|verschoven|gewijzigd|verhoogd|verlaagd) naar)(?: (?:nu|momenteel|voortaan|eigenlijk|inmiddels|op|de|het|om|tot|in|nr\\.?))*',
  fillers: 'nieuwe?|huidige|oude|juiste|eigen|laatste|eerste|actuele',
  vagueNouns: 'probleem|vraag|fout|idee|mening|code|doel|resultaat|antwoord|gevoel|indruk|voorstel|plan',
  attributes: {
    phone: '(?:telefoon|mobiele )?nummer|telefoonnummer|gsm-?nummer|mobiel|telefoon',
    email: 'e-?mail(?:adres)?|mailadres',
    address: '(?:post|bezorg|factuur|woon)?adres',
    name: 'naam',
    birthday: 'verjaardag|geboortedatum',
    deadline: 'deadline|inleverdatum|uiterste datum',
    appointment: 'afspraak|tandartsafspraak|doktersafspraak',
    meeting: 'vergadering|overleg|meeting',
    budget: 'budget|begroting',
    topic: 'onderwerp|titel',
    order_number: 'bestelnummer|ordernummer',
    customer_number: 'klantnummer',
    booking_number: 'boekingsnummer|reserveringsnummer',
    invoice_number: 'factuurnummer',
    ticket_number: 'ticketnummer|dossiernummer|zaaknummer',
    contract_number: 'contractnummer|polisnummer',
    iban: 'iban|rekeningnummer',
    job: 'beroep|baan|functie',
    employer: 'werkgever|bedrijf',
    home: 'woonplaats',
    port: 'poort',
    host: 'host|server',
    version: 'versie',
    database: 'database',
    blood_type: 'bloedgroep',
    wedding: 'bruiloft|trouwdag',
    flight: 'vlucht|terugvlucht',
    trip: 'reis|vakantie',
  },
  relations: {
    wife: 'vrouw|echtgenote',
    husband: 'man|echtgenoot',
    partner: 'partner|vriendin',
    mother: 'moeder|mama',
    father: 'vader|papa',
    sister: 'zus|zusje',
    brother: 'broer|broertje',
    son: 'zoon',
    daughter: 'dochter',
    child: 'kind|kinderen',
    friend: 'vriend',
    boss: 'baas|manager|leidinggevende',
    colleague: 'collega',
    tutor: 'begeleider|begeleidster|coach|docent|docente',
    doctor: 'huisarts|dokter|arts',
    dog: 'hond',
    cat: 'kat|poes|kater',
  },
  subject: '(?:ik|wij|we) ',
  statements: [
    [
      'home',
      '(?:woont?|wonen|leeft?|leven) (?:nu |momenteel |inmiddels |tegenwoordig )*(?:sinds [\\w ]{1,20} (?:nu |momenteel |inmiddels |tegenwoordig )*)?in (.+)',
    ],
    ['home', '(?:ben|zijn|is) (?:nu |net |onlangs |inmiddels )*(?:verhuisd naar|naar) (.+?)(?: verhuisd)?'],
    ['home', '(?:verhuis|verhuizen|verhuist) (?:nu |binnenkort )*naar (.+)'],
    [
      'employer',
      '(?:werkt?|werken) (?:nu |momenteel |niet meer )*(?:sinds [\\w ]{1,20} (?:nu |momenteel |niet meer )*)?(?:bij|voor) (.+)',
    ],
    ['job', '(?:werkt?|werken) (?:nu )?als (.+)'],
    ['origin', '(?:komt?|komen) (?:oorspronkelijk )?uit (.+)'],
    ['age', '(?:ben|is) (?:nu |al )*(\\d{1,3}(?: jaar(?: oud)?)?)'],
    ['birthplace', '(?:ben|is) (?:in|op) (.+?) geboren'],
    ['birthplace', '(?:ben|is) geboren (?:in|op) (.+)'],
    ['allergy.*', '(?:ben|is|zijn) (?:erg |ook |niet meer )*allergisch voor (.+)'],
    ['allergy.*', 'heb(?:ben)? (?:ook )?een (.+?allergie)'],
    [
      'medication.*',
      '(?:neemt?|slikt?|gebruikt?) (?:dagelijks |elke dag |nu |ook )*(.*?(?<!\\d)\\d+ ?(?:mg|ml|tabletten?|pillen).*|.+ (?:dagelijks|per dag|elke ochtend|elke avond))',
    ],
    [
      'condition.*',
      '(?:heb|heeft|lijd aan) (?:al [\\w ]{1,20} )?((?:diabetes|astma|adhd|migraine|epilepsie|hoge bloeddruk|coeliakie|reuma|eczeem).*)',
    ],
    [
      'diet',
      '(?:ben|is|zijn|eet|leef) (?:nu |strikt |niet meer )*((?:een )?(?:veganist|vegetarier|vegetarisch|veganistisch|glutenvrij|lactose-?intolerant|halal|koosjer))',
    ],
    ['language_spoken.*', 'spreekt? (?:vloeiend |ook |goed |een beetje )*([a-z]+(?: en [a-z]+)?)'],
    [
      'marital_status',
      '(?:ben|zijn) (?:nu |niet meer )*(?:sinds [\\w ]{1,20} (?:nu |niet meer )*)?(getrouwd|gescheiden|vrijgezel|verloofd|weduwe|weduwnaar)',
    ],
    ['studies', '(?:studeer|studeert) (?:nu )?(.+)'],
    [
      'pets.*',
      '(?:heb|hebben|heeft) (?:een|twee|drie|\\d) ((?:hond|honden|kat|katten|kinderen|zonen|dochters|kind|zoon|dochter)\\b.*)',
    ],
    ['budget', '(?:kan|kunnen|wil|willen) (?:maximaal|hooguit|tot|niet meer dan) (.+?) (?:uitgeven|besteden)'],
    ['appointment.*', '(?:heb|hebben) een (?:afspraak|vergadering) (.+)'],
    [
      'deadline.*',
      '(?:moet|moeten) (.{1,60}?)(?:voor|tegen|uiterlijk) (?:op )?(?:.{0,30}\\d|(?:maan|dins|woens|donder|vrij|zater|zon)dag).*',
    ],
  ],
  decisions:
    '(?:laten we|laat ons)|(?:we|wij|ik) (?:nemen|neem|kiezen voor|kies voor|hebben (?:besloten|gekozen)|heb (?:besloten|gekozen)|gaan voor|ga voor|blijven bij|blijf bij|stappen over op|stap over op|gaan [\\w ]{1,30} gebruiken|houden het op|boeken)|(?:neem|kies|gebruik|dan)(?: toch)?(?: maar)?(?: liever)?',
  uses: '(?:we|wij|ik) (?:gebruiken|gebruik|werken met|werk met|draaien op|zitten op|hebben)|(?:het project|de app|de backend|de frontend|de server) (?:gebruikt|draait op|is geschreven in)',
  prohibitions:
    'zonder (?!doute|probleme|souci|duda|problema|duvida|zweifel|problem|twijfel)|(?:alsjeblieft )?(?:nooit|geen)|(?:ik|we) (?:wil|willen) (?:alsjeblieft )?geen|(?:gebruik|schrijf|maak|neem|doe)(?: alsjeblieft)? (?:nooit|geen)|vermijd|(?:je|we) (?:mag|mogen|moet|moeten) (?:niet|nooit|geen)',
  demands:
    '(?:alsjeblieft )?altijd|(?:gebruik|schrijf|antwoord|geef|toon|maak|noem|voeg)(?: alsjeblieft)? (?:altijd|voortaan|me altijd)',
  limits: 'onder de|onder|maximaal|hooguit|niet meer dan|minder dan|tot|minstens|minimaal|niet langer dan',
  units: "woorden|tekens|zinnen|paginas?|pagina's|regels|minuten|uur|uren|dagen|euro|procent|punten|alineas?",
  preferences:
    '(?:ik|we|wij) (?:heb(?:ben)? liever|geef de voorkeur aan|geven de voorkeur aan|houd? van|houden van|wil liever|zou liever|hou niet van|houd niet van|haat)|mijn voorkeur (?:is|gaat uit naar)',
  topics: [
    ['theme', '\\b(donkere?|lichte?)[ -]?(?:modus|thema|weergave)'],
    [
      'language',
      '\\b(?:antwoord|schrijf|praat|reageer)(?: alsjeblieft)?(?: altijd| alleen)? in het (nederlands|engels|duits|frans|spaans|italiaans|portugees)',
    ],
    ['length', '\\b(korte|beknopte|uitgebreide|lange|gedetailleerde) (?:antwoorden|uitleg)'],
    ['length', '\\b(?:houd? (?:het|je antwoorden)|antwoord)(?: alsjeblieft)? (kort|beknopt|uitgebreid)'],
  ],
  habits:
    '(?:ik|we|wij) (?:kan|kunnen|mag|mogen) (?:alleen|niet|geen) (?=\\w)|(?:ik|we|wij) (?:eet|eten|drink|drinken|werk|werken|doe|doen|verkoop|verkopen|rij|rijden) (?:nooit|alleen|geen|niet) (?=\\w)',
  lasting: 'vanaf nu|voortaan|in het vervolg|elke keer',
  reschedules:
    '(?:we|wij|ik) (?:verplaatsen|verplaats|verschuiven|verschuif|verzetten|verzet|wijzigen|wijzig|verhogen|verlagen) (?:de |het |onze |mijn )?(?<noun>[\\w -]{2,40}?) (?:naar|tot) (?=.*(?:\\d|dag\\b))',
  newOne: '(?:de|het) nieuwe is',
  names: '(?:ik heet|mijn naam is|(?:alsjeblieft )?noem (?:me|mij)|je mag me)(?: maar| gewoon| nu| voortaan)*',
}
