import type { LanguageRules } from './language.ts'

export const french: LanguageRules = {
  code: 'fr',
  markers:
    'je j de en te mon ma mes le les des est et une pour avec dans pas nous vous qui sur au aux du suis ai moi c qu ne notre ce cette sont mais plus il elle on ca toujours jamais mots la',
  openings:
    "je|j'|nous|mon|ma|mes|notre|nos|il|elle|on|vous|tu|c'est|peux|pouvez|pourriez|s'il|appelle-moi|retiens|merci|la|le|les|reponds|repondez",
  commaOpenings:
    "sans|comment|quoi|qui|ou|si|quand|comme|jamais|toujours|pas|mais|donc|alors|puis|ne|n'|prends|prenez|utilise|maintenant",
  conjunctions: "mais|parce que|parce qu'|car|bien que|tandis que|sauf si|pour que",
  coordinators: 'et|ou|donc|puis|alors',
  leadIns:
    "j'ai change d'avis|nous avons change d'avis|et|mais|donc|alors|ah|oh|bon|ben|oui|non|ok|d'accord|bonjour|salut|merci|au fait|d'ailleurs|en fait|finalement|s'il te plait|s'il vous plait|svp|stp|maintenant|desormais|a partir de maintenant|a l'avenir|pour info|info|correction|comme je l'ai dit|je crois que|je pense que|plutot|apres reflexion|aussi|toi",
  hypothetical: "si|s'ils?(?! te| vous)|suppose|supposons|imagine|imaginons|au cas ou|peut-etre|quand|lorsque",
  questions:
    'peux|peut|pouvez|pourrais|pourriez|est-ce|as-tu|avez-vous|es-tu|dois|devrais|comment|quoi|que|quel|quelle|quels|quelles|qui|ou|quand|pourquoi|combien|y a-t-il|faut-il',
  reporting:
    "dit|disait|a dit|m'a dit|nous a dit|ecrit|a ecrit|raconte|affirme|pretend|demande|a demande|repond|a repondu|par exemple|p\\.? ?ex\\.?|exemple|comme",
  negation: "pas|jamais|aucun|aucune|sans|rien|ni|plus|allergique|allergie|deteste|evite|n'",
  wish: 'prefere|aime|adore|voudrais|veux|souhaite|deteste|utilise|toujours|jamais|svp|stp|plait|appelle|reponds|ecris|evite|besoin|vegan|vegane|vegetalien|vegetalienne|vegetarien|vegetarienne|prefer\\w{1,3}|favori|favorite',
  change:
    "plutot|a la place|au lieu d|change d'avis|finalement|ne [\\w']{1,12} plus|n'[\\w']{1,12} plus|correction|maintenant|desormais|nouveau|nouvelle|demenage|reporte|repoussee?|deplacee?|avancee?|en fait",
  notNames:
    'lundi|mardi|mercredi|jeudi|vendredi|samedi|dimanche|janvier|fevrier|mars|avril|mai|juin|juillet|aout|septembre|octobre|novembre|decembre|janv|fevr|avr|juil|sept|oct|nov|dec|monsieur|madame|mme|bonjour|salut|merci|francais|anglais|allemand',
  capitalsAreNames: true,
  reminder:
    "(?:retiens|retenez|souviens-toi|souvenez-vous|rappelle-toi|rappelez-vous)(?: bien| stp| svp)*(?: que| qu'|:| :)?|n'oublie(?:z)?(?: surtout)? pas(?: que| qu'|:| :)|(?:note|notez)(?: bien| stp| svp)*(?: que| qu'|:| :)|garde(?:z)? (?:bien )?en (?:tete|memoire)(?: que| qu'|:| :)|important ?:",
  bareReminder:
    "(?:retiens|retenez|note|notez)-le(?: bien| stp| svp)*|souviens-t'en|souviens-toi de (?:ca|cela)|(?:retiens|note) (?:ca|cela)|ne l'oublie pas|n'oublie pas (?:ca|cela)",
  nounFirst: true,
  possessive: 'mon|ma|mes|notre|nos',
  article: "le |la |les |l'",
  copula:
    "(?:est|sont|etait|sera|s'appelle|(?:est|a ete) (?:reportee?|repoussee?|deplacee?|avancee?|fixee?|portee?|passee?|modifiee?) (?:au|a|en)|passe (?:du [\\w ]{1,15} )?(?:au|a)|devient)(?: (?:maintenant|desormais|actuellement|finalement|plutot|de|le|la|les|au|a|en|du|pour le|fixee? au))*",
  fillers:
    'nouveau|nouvelle|nouvel|actuel|actuelle|ancien|ancienne|bon|bonne|vrai|vraie|propre|dernier|derniere|premier|premiere',
  vagueNouns: 'probleme|question|erreur|idee|avis|code|but|objectif|resultat|reponse|impression|proposition|plan',
  attributes: {
    order_number: 'numero de commande',
    customer_number: 'numero (?:de )?client',
    booking_number: 'numero de (?:reservation|dossier)|reference de reservation',
    invoice_number: 'numero de facture',
    ticket_number: 'numero de ticket',
    contract_number: 'numero de (?:contrat|police)',
    iban: 'iban|numero de compte',
    phone: '(?:numero(?: de (?:telephone|portable|mobile|tel))?|telephone|portable)',
    email: '(?:adresse )?(?:e-?mail|mail|courriel)(?: adresse)?',
    address: 'adresse(?: postale| de livraison| de facturation)?',
    name: 'nom|prenom',
    birthday: 'anniversaire|date de naissance',
    deadline: 'date limite|echeance|delai|deadline|date de rendu',
    appointment: 'rendez-vous|rdv',
    meeting: 'reunion',
    budget: 'budget',
    topic: 'sujet|theme|titre',
    opening: 'ouverture',
    job: 'metier|poste|profession|travail',
    employer: 'employeur|entreprise|societe',
    home: 'ville',
    port: 'port',
    host: 'hote|serveur',
    version: 'version',
    database: 'base de donnees',
    blood_type: 'groupe sanguin',
    wedding: 'mariage',
    flight: 'vol|vol retour',
    trip: 'voyage|sejour',
  },
  relations: {
    wife: 'femme|epouse',
    husband: 'mari|epoux',
    partner: 'compagne|compagnon|copine|copain|conjointe?',
    mother: 'mere|maman',
    father: 'pere|papa',
    sister: 'soeur|sœur',
    brother: 'frere',
    son: 'fils',
    daughter: 'fille',
    child: 'enfants?',
    friend: 'amie?',
    boss: 'chef|cheffe|patronne?|manager|responsable',
    colleague: 'collegue',
    tutor: 'tuteur|tutrice|directeur|directrice|encadrante?|coach',
    doctor: 'medecin|docteur',
    dog: 'chien|chienne',
    cat: 'chat|chatte',
  },
  subject: "(?:je |j'|nous |on )",
  statements: [
    [
      'home',
      "(?:n')?(?:habite|habitons|vis|vit|vivons|reside)(?:nt)? (?:maintenant |actuellement |desormais |toujours )*(?:a|en|au|aux|dans|pres de) (.+)",
    ],
    [
      'home',
      '(?:ai|avons|a|viens de|venons de) (?:recemment |maintenant )?(?:demenager?|emmenager?) (?:a|en|au|aux|dans) (.+)',
    ],
    ['home', '(?:demenage|demenageons) (?:bientot )?(?:a|en|au|aux|dans) (.+)'],
    [
      'employer',
      '(?:ne )?(?:travaille|travaillons|bosse) (?:plus |maintenant |actuellement |desormais )*(?:chez|pour) (.+)',
    ],
    ['job', '(?:travaille|bosse) (?:maintenant )?(?:comme|en tant que) (.+)'],
    ['origin', "(?:viens|vient|venons|suis originaire) (?:de |du |des |d')(.+)"],
    ['age', '(?:ai|a|avons) (?:maintenant |deja )?(\\d{1,3} ans)'],
    ['birthplace', '(?:suis|est) nee? (?:a|en|au|le) (.+)'],
    [
      'allergy.*',
      "(?:ne )?(?:suis|est|sommes) (?:plus |aussi |tres |egalement |fortement )*allergiques? (?:aux|au|a la|a l'|a) ?(.+)",
    ],
    ['allergy.*', "(?:ai|a) (?:aussi )?une allergie (?:aux|au|a la|a l'|a) ?(.+)"],
    [
      'medication.*',
      '(?:prends|prend) (?:aussi |maintenant )?(.*?(?<!\\d)\\d+ ?(?:mg|ml|comprimes?).*|.+ (?:par jour|chaque jour|tous les jours|chaque matin|chaque soir|le matin|le soir))',
    ],
    [
      'condition.*',
      "(?:ai|a|souffre|souffrons) (?:de |du |d'|des |de l'|de la )?((?:diabete|asthme|tdah|migraines?|epilepsie|hypertension|maladie c\\w|rhumatismes|eczema).*)",
    ],
    [
      'diet',
      '(?:ne )?(?:suis|est|sommes|mange) (?:plus |maintenant |strictement )*((?:vegane?|vegetalien(?:ne)?|vegetarien(?:ne)?s?|sans gluten|intolerante? au lactose|halal|casher))',
    ],
    [
      'language_spoken.*',
      "parle(?:ns|nt)? (?:couramment |aussi |bien |un peu )*(?:le |l'|d')?([a-z]+(?: et (?:le |l')?[a-z]+)?)",
    ],
    [
      'marital_status',
      '(?:ne )?(?:suis|sommes) (?:plus |maintenant |desormais )*(marie\\w{0,2}|divorce\\w{0,2}|celibataire|fiance\\w{0,2}|veuve|veuf)',
    ],
    ['studies', "(?:etudie|fais des etudes (?:de|d'|en)) ?(.+)"],
    [
      'pets.*',
      '(?:ai|avons|a) (?:un|une|deux|trois|\\d) ((?:chiens?|chiennes?|chats?|chattes?|enfants?|fils|filles?)\\b.*)',
    ],
    [
      'budget',
      "(?:peux|pouvons|veux|voulons) (?:depenser )?(?:au maximum |au plus |jusqu'a |maximum )(?:depenser )?(.+)",
    ],
    ['appointment.*', '(?:ai|avons) (?:un )?(?:rendez-vous|rdv|une reunion) (.+)'],
    [
      'deadline.*',
      "(?:dois|devons) (.{1,60}?)(?:avant|pour|d'ici) (?:le |au )?(?:.{0,30}\\d|lundi|mardi|mercredi|jeudi|vendredi|samedi|dimanche).*",
    ],
  ],
  decisions:
    "(?:(?:je|nous|on) (?:prends|prenons|prend|choisis|choisissons|choisit|garde|gardons|reste sur|restons sur|opte pour|optons pour|part sur|partons sur|pars sur|va prendre|vais prendre|allons prendre|utilise|utilisons|reserve|reservons)|(?:j'ai|nous avons|on a) (?:decide|choisi|opte|retenu|reserve)|(?:prenons|partons sur|choisissons|utilisons|prends|utilise|passons a|allons-y avec))(?: plutot| finalement| donc)*",
  uses: "(?:(?:je|nous|on) (?:utilise|utilisons|travaille avec|travaillons avec|tourne sur|sommes sur|suis sur|developpe en)|j'utilise|(?:le projet|l'appli|l'application|le backend|le frontend|le serveur) (?:utilise|tourne sur|est en|est ecrit en))",
  prohibitions:
    "sans (?!doute|probleme|souci|duda|problema|duvida|zweifel|problem|twijfel)|(?:jamais|pas) d(?:e |')|(?:ne|n')(?: ?[\\w'-]{2,20}) (?:jamais|pas|aucune?|surtout pas)|(?:je|nous|on) (?:ne )?(?:veux|voulons|veut) (?:pas|aucune?)|evite(?:z)?|sans jamais",
  demands:
    'toujours|(?:utilise|ecris|reponds|donne|montre|mets|ajoute|commence|termine)(?:z)?(?:-moi)? toujours|il faut toujours',
  limits: "moins de|au maximum|maximum|au plus|pas plus de|jusqu'a|au moins|sous",
  units: 'mots|caracteres|phrases|pages?|lignes|minutes|heures|jours|euros?|pour cent|points|paragraphes',
  preferences:
    "(?:je|nous|on) (?:prefere|preferons|aime|aimons|adore|adorons|deteste|detestons|n'aime pas|n'aimons pas|aimerais mieux)|j'(?:aime|adore|aimerais mieux)|ma preference (?:est|va a)",
  topics: [
    ['theme', '\\b(?:mode|theme) (sombre|clair|nuit)'],
    [
      'language',
      '\\b(?:reponds|repondez|ecris|ecrivez|parle)(?:-moi)?(?: toujours| uniquement)? en ((?:francais|anglais|allemand|espagnol|italien|portugais|neerlandais)(?: simple| facile)?)',
    ],
    ['length', '\\breponses (courtes|breves|concises|longues|detaillees)'],
    ['length', '\\b(?:sois|soyez|reponds)(?: plus)? (bref|breve|concis|concise|brievement)'],
    ['address_form', '\\b(tutoie|vouvoie|tutoyez|vouvoyez)'],
  ],
  habits:
    '(?:je|nous|on) (?:ne )?(?:peux|pouvons|peut|fais|faisons|fait|prends|prenons|accepte|acceptons|vends|vendons|mange|mangeons|bois|buvons|travaille|travaillons|livre|livrons) (?:pas|jamais|plus|que|seulement|uniquement) ',
  lasting: "desormais|a partir de maintenant|a l'avenir|chaque fois|dorenavant",
  reschedules:
    "(?:on|nous|je) (?:repousse|repoussons|reporte|reportons|avance|avancons|decale|decalons|deplace|deplacons|passe|passons) (?:le |la |les |l'|notre |mon |ma )?(?<noun>[\\w' -]{2,40}?) (?:au|a|en|du [\\w ]{1,20} au) (?=.*(?:\\d|di\\b))",
  newOne: "(?:le nouveau|la nouvelle|le nouvel) (?:est|c'est)",
  names: "(?:je m'appelle|mon (?:nom|prenom) est|appelle(?:z)?-moi|je suis)(?: simplement| juste| maintenant)*",
}
