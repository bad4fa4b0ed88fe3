import type { LanguageRules } from './language.ts'

const month = '(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]{0,6}'
const date = `(?:(?:the )?\\d{1,2}(?:st|nd|rd|th)?(?: of)? ${month}|${month}\\.? \\d|\\d{1,4}[-/.]\\d{1,2}|(?:the )?\\d{1,2}(?:st|nd|rd|th)|(?:next |this |end of (?:the )?(?:day|week|month|year)|end of )?(?:(?:mon|tues|wednes|thurs|fri|satur|sun)day)?|tomorrow|tonight|the end of|next week|next month|easter|christmas)(?<=\\w)\\b`
const moved =
  '(?:changed|moved|pushed(?: back| out)?|postponed|extended|brought forward|shifted|rescheduled|increased|raised|lowered|reduced|cut|bumped|delayed|updated|set)'

export const english: LanguageRules = {
  code: 'en',
  markers:
    "i my the and is you to of it that for with we are what please this have not can your be how was at our don't i'm i've i'd let's but they there from would should about when on me do no as has will if so any never always use keep than or by",
  openings:
    "i|i'm|i've|i'd|i'll|we|we're|we've|we'll|my|our|it's|that's|he|she|they|you|there|let's|please|can|could|would|should|call me|remember that|note that|don't|never|always|answer|reply|only (?:text|call|write|e-?mail)",
  commaOpenings:
    "don't|do not|never|always|the [\\w-]{1,30} (?:is|are|was|were)|it|this|your|will|do|does|is|are|how|what|which|who|where|while|since|if|when|as|so|thanks|especially|however|also|right|ok|plus|then|thus|use|no|now|at most|max|keep|under|most people|people|everyone|in case|with",
  conjunctions: "but|because|although|(?:- )?(?:even )?though|whereas|'cause|cuz|unless|even if|so that",
  coordinators: 'and|so|then|or',
  leadIns:
    'and|but|so|then|also|plus|actually|oh|well|ok|okay|yes|yeah|hey|btw|fyi|by the way|just so you know|for me|for the record|personally|honestly|in general|generally|overall|' +
    'as (?:i said|mentioned|a reminder)|from now on|going forward|in the future|these days|nowadays|lately|now|please|kindly|again|first|firstly|second|finally|basically|in fact|of course|however|correction|update|one more thing|on second thou?ghts?|change of plan|scratch that|instead|' +
    "i(?:'ve| have)? changed my mind|i (?:just |also )?(?:think|believe|guess|said|told you|mean|should mention|forgot to (?:say|mention))(?: that)?|(?:you should|just so you) know(?: that)?|in case it (?:helps|matters)|for context|for reference",
  hypothetical:
    "if|whenever|when|unless|suppos(?:e|ing)|imagine|assum(?:e|ing)|pretend|whether|in case|let's say|had i|were i|as if|maybe|perhaps",
  questions:
    "can|could|would|will|shall|should|do(?! not\\b|n't)|does|did|is|are|am|was|were|has|have|any|what|what's|how|how's|why|which|who|where|when|don't you|isn't|aren't|right|ok|mind|wondering",
  reporting:
    'said|says|told (?:me|us|him|her|them)|tells (?:me|us)|asked|asks|replied|wrote|writes|goes|claims?|claimed|reads|states|for example|for instance|e\\.?g\\.?|example|such as|something like',
  negation:
    "not|never|no|none|nor|neither|without|cannot|can't|hates?|dislikes?|detests?|avoids?|avoiding|refuses?|allerg\\w{0,6}|\\w{2,6}n't",
  wish: "prefer|like|love|enjoy|want|wish|rather|favou?rite|hate|dislike|avoid|us(?:e|ing)|call me|always|never|please|(?<=^|[,:;] ?)(?:keep|make|write|answer|reply|respond|speak|format|set|switch|stick)|go with|need|allergic|vegan|vegetarian|do not|no|\\w{2,6}n't",
  change: `instead|rather than|changed my mind|change of plans?|on second thou?ghts?|scratch that|no longer|any ?more|actually|correction|not [\\w. -]{1,30} but|switch(?:ed|ing)?|mov(?:ed?|ing)|migrat(?:ed?|ing)|relocat(?:ed|ing)|(?:has|have|was|were|got|been|is|are) (?:been |now )*${moved}|is now|are now|now|new|turns out|update`,
  notNames:
    "monday|tuesday|wednesday|thursday|friday|saturday|sunday|mon|tue|tues|wed|thu|thur|thurs|fri|sat|sun|january|february|march|april|may|june|july|august|september|october|november|december|jan|feb|mar|apr|jun|jul|aug|sep|sept|oct|nov|dec|english|german|french|spanish|american|british|european|god|ok|tv|pm|am|hi|hey|hello|thanks|christmas|easter|halloween|thanksgiving|mr|mrs|ms|dr|sir|mom|dad|mum|grandma|grandpa|bro|lol|omg|wow|btw|fyi|asap|diy|faq|pdf|url|api|json|html|css|sql|i'm|i've|i'd|i'll|internet|web",
  capitalsAreNames: true,
  reminder:
    '(?:(?:can|could|would|will) you )?(?:please |just |also |always |kindly )*(?:remember|memori[sz]e)(?: this| that| the following| for (?:later|me)| please)*(?: that|:|,)? ?(?!when\\b|how\\b|what\\b|why\\b|where\\b|who\\b|me\\b|the time\\b)|' +
    '(?:(?:can|could|would|will) you )?(?:please |just |also |kindly )*(?:note|keep in mind|bear in mind|make a note|be aware|take note|write down|jot down|save)(?: this| the following| for (?:later|me)| please)*(?: that|:) ?|' +
    "(?:please |and )*(?:don't|do not|never) (?:ever )?forget(?: that|:)? |(?:very |super |really )?important(?: note| fact| detail)?: ?|(?:key (?:fact|finding|point|result)|nb|reminder|for reference|note to self|fact|note): ?",
  bareReminder:
    "(?:please |and |just |so )*(?:(?:can|could) you )?(?:please )?(?:remember|memori[sz]e|save|note|store) (?:that|this|it)(?: down)?(?: for (?:later|me|next time))?(?: please)?|(?:please |and )*(?:don't|do not) forget (?:that|this|it)|(?:please )?(?:keep|bear) (?:that|this|it) in mind|(?:please )?make a note of (?:that|this|it)|(?:please )?remember",
  nounFirst: false,
  possessive: 'my|our',
  article: 'the|this',
  copula: `(?:is|are|was|were|will be|would be|'s|equals|falls|starts|begins|ends|named|called|goes by|lives|sits|runs|points|(?:has|have|was|were|got|is|are) (?:been |now )*${moved}|${moved}|slipped)(?: (?:now|actually|currently|officially|really|called|named|set|to|on|at|in|by|until|from|under|still|at least|around|about))*`,
  fillers:
    'new|current|actual|updated|correct|right|full|old|own|real|main|primary|final|next|upcoming|latest|exact|first|last|personal|dear|lovely|little',
  vagueNouns:
    'problem|question|issue|error|bug|code|guess|point|idea|understanding|concern|thought|thoughts|feeling|hope|answer|result|output|reason|opinion|view|impression|function|script|query|test|tests|build|fear|worry|life|day|favou?rite|best|worst|biggest|whole|suggestion|advice|preference|attempt|approach|mistake|first thought|experience|pleasure|thing|part|only',
  attributes: {
    phone: '(?:tele)?phone(?: number)?|mobile(?: (?:phone|number))?|cell(?: ?phone)?(?: number)?|number',
    email: 'e-?mail(?: address)?',
    address: '(?:home |postal |shipping |delivery |mailing |billing |street )?address',
    name: '(?:full |first |last )?name',
    birthday: 'birthday|birth ?date|date of birth',
    deadline: 'deadline|due date|cut-?off(?: date)?|submission date',
    appointment: 'appointment',
    meeting: 'meeting|call',
    budget: 'budget|spending limit|price limit',
    weight: 'weight',
    height: 'height',
    income: '(?:net |gross )?(?:income|salary)',
    rent: 'rent',
    deposit: 'deposit|down payment',
    price: 'price|cost',
    limit: 'limit',
    target: 'target',
    goal: 'goal|aim',
    topic: 'topic|theme|working title|title',
    dates: '(?:travel )?dates',
    guests: '(?:number of )?guests|guest (?:count|list)|head ?count',
    reference: 'reference(?: number| code)?|confirmation (?:number|code)',
    order_number: 'order(?: number| id| no\\.?)?',
    customer_number: '(?:customer|client) (?:number|id)',
    booking_number: '(?:booking|reservation)(?: number| code| reference| id)?',
    invoice_number: 'invoice(?: number| id)?',
    ticket_number: '(?:support )?(?:ticket|case)(?: number| id)?',
    account_number: 'account(?: number| id)?',
    tracking_number: 'tracking (?:number|code|id)',
    policy_number: 'policy number',
    job: 'job(?: title)?|profession|occupation|role',
    employer: 'employer|company',
    port: 'port(?: number)?',
    host: 'host(?: ?name)?',
    version: 'version',
    database: 'database|db',
    blood_type: 'blood (?:type|group)',
    launch: 'launch(?: date)?|release(?: date)?|go-live(?: date)?',
    home: 'home ?town',
  },
  relations: {
    wife: 'wife',
    husband: 'husband',
    partner: 'partner|girlfriend|boyfriend|fiancee?|spouse',
    mother: 'mother|mom|mum',
    father: 'father|dad',
    sister: '(?:older |younger |little |big |twin )?sister',
    brother: '(?:older |younger |little |big |twin )?brother',
    son: '(?:older |younger |oldest |youngest )?son',
    daughter: '(?:older |younger |oldest |youngest )?daughter',
    child: 'kid|child|baby',
    friend: '(?:best |good |close |old )?friend',
    boss: 'boss|manager|team lead',
    tutor: 'tutor|advis[eo]r|supervisor|professor|teacher|coach|mentor',
    colleague: 'colleague|co-?worker|teammate',
    doctor: 'doctor|gp|dentist|therapist|surgeon',
    lawyer: 'lawyer|accountant|landlord|landlady',
    neighbour: 'neighbou?r|roommate|flatmate',
    relative: 'aunt|uncle|cousin|nephew|niece|grand(?:ma|pa|mother|father|son|daughter)',
    dog: 'dog|puppy',
    cat: 'cat|kitten',
    pet: 'pet|horse|parrot|rabbit|hamster',
  },
  subject: "(?:i|we)(?: |(?='))",
  statements: [
    [
      'home',
      "(?:currently |now |still |both |also |no longer |don't |all |have |'ve |been )*(?:lives?|living|resides?) (?:over |back |out )?(?:in|near|at|on) (.+)",
    ],
    [
      'home',
      "(?:'m|am|'re|are|is) (?:currently |now |still |actually |no longer )*(?:living|based|located|residing) in (.+)",
    ],
    [
      'home',
      "(?:just |recently |finally |'ve |have |has |'re |are |'m |am |is )*(?:moved|relocated|moving|relocating) (?:over |back |out |house )*to (.+)",
    ],
    ['employer', "(?:currently |now |still |both |also |no longer |don't )*works? (?:at|for) (.+)"],
    ['employer', "(?:'m|am|'re|are|is) (?:currently |now |no longer )*working (?:at|for) (.+)"],
    [
      'employer',
      "(?:just |recently |finally |'ve |have )*(?:joined|started (?:working |a (?:new )?job )?(?:at|for)|got (?:a (?:new )?job|hired) (?:at|by)) (?!an? |the )(.+)",
    ],
    ['job', '(?:currently |now |still )*works? as (.+)'],
    [
      'job',
      "(?:'m|am|is) (?:currently |now |also |actually |no longer )*(?:working as |employed as )?an? ((?:\\w[\\w-]{0,20} ){0,3}(?:nurse|doctor|physician|surgeon|dentist|vet|pharmacist|therapist|psychologist|teacher|tutor|professor|lecturer|researcher|scientist|student|engineer|developer|programmer|designer|architect|analyst|consultant|manager|director|founder|entrepreneur|lawyer|accountant|journalist|writer|author|editor|translator|photographer|musician|artist|chef|cook|baker|barista|waiter|waitress|driver|pilot|electrician|plumber|carpenter|mechanic|farmer|gardener|firefighter|soldier|librarian|secretary|assistant|freelancer|salesperson|realtor|paramedic|midwife|social worker|data scientist|admin(?:istrator)?|technician|trainee|intern|apprentice)\\b.*)",
    ],
    ['origin', "(?:'m|am|'re|are|is|come|comes) (?:originally )?from (.+)"],
    ['age', "(?:'m|am|is) (?:now |already )*(\\d{1,3}(?: years old)?(?=$|,| and).*)"],
    ['age', '(?:just |recently )*turned (\\d{1,3})'],
    ['birthplace', 'was born (?:in|on) (.+)'],
    [
      'allergy.*',
      "(?:'m|am|'re|are|is) (?:also |severely |very |highly |deathly |mildly |now |not |no longer )*allergic to (.+)",
    ],
    ['allergy.*', "(?:'ve|have|has|'s)(?: got)? (?:also )?an? (.{2,40}? allergy)"],
    [
      'medication.*',
      "(?:currently |also |now |'m |am |is |no longer |'ve been |have been )*(?:takes?|taking|on|prescribed) (.{0,60}?\\d+ ?(?:mg|mcg|ml|units?|pills?|tablets?).*|(?!the |it |that ).{3,60} (?:daily|every (?:day|morning|evening|night)|twice a day|once a day))",
    ],
    ['medication.*', "(?:'m|am|was|were|got|'ve been|is) prescribed (.+)"],
    [
      'condition.*',
      "(?:'ve|have|has|suffer from|suffers from|live with|'ve got) (?:had )?(?:a |an |mild |severe |chronic )*((?:type [12] )?(?:diabetes|asthma|adhd|add|migraines?|epilepsy|high blood pressure|hypertension|c(?:o)?eliac(?: disease)?|arthritis|eczema|psoriasis|anxiety|depression|insomnia|dyslexia|autism|ibs|heart (?:condition|disease)|anaemia|anemia|osteoporosis|scoliosis|tinnitus|lactose intolerance|sciatica|back pain|knee (?:injury|pain))\\b.*)",
    ],
    ['condition.*', "(?:was|were|'ve been|have been|has been|'m|am|got) (?:just |recently )*diagnosed with (.+)"],
    [
      'condition.*',
      "(?:has|have|'ve|'ve got|'s got) (?:a |an )?((?:bad|weak|sore|injured) (?:back|knees?|shoulder|hip|heart|ankle)\\b.*|(?:back|knee|shoulder|hip|heart) (?:problems?|pain|trouble)\\b.*)",
    ],
    [
      'condition.*',
      "(?:'m|am|is|are) (?:also |now )*((?:coeliac|celiac|diabetic|asthmatic|epileptic|lactose[- ]intolerant|gluten[- ]intolerant|pregnant|deaf|blind|colou?r-?blind|left-handed)\\b.*)",
    ],
    [
      'diet',
      "(?:(?:'m|am|is|are)(?: also| now| no longer)*|(?:'s|'ve|has|have) (?:now |just |also )?(?:gone|become|turned|been)|went|became|turned) (?:a |an )?(?:strict )?((?:vegan|vegetarian|pescatarian|halal|kosher)\\b.*)",
    ],
    ['income', '(?:earn|earns|make|makes|take home|takes home) (?:about |around |roughly )?([$€£]?\\d.*)'],
    ['weight', '(?:weigh|weighs) ([^\\d\\n]*\\d.*)'],
    ['weight', "(?:'m|am) (?:now |currently |down |up )*(?:at|to) (\\d[\\d.,]* ?(?:kg|kilos|pounds|lbs|stone).*)"],
    [
      'goal.*',
      "(?:'d like|would like|want|hope|plan|aim|'m trying|am trying|'m hoping|am hoping) to (?:reach|get to|hit|lose|gain|save|run|weigh) ([^\\d\\n]*\\d.*)",
    ],
    [
      'language_spoken.*',
      '(?:also |can |fluently )*speaks? (?!to\\b|with\\b|up\\b|about\\b|for\\b)(?:fluent |native |some |a (?:bit of|little) |basic )*(.+)',
    ],
    [
      'marital_status',
      "(?:'m|am|'re|are|got|just got) (?:now |no longer |recently |happily |still |not )*(married|engaged|divorced|single|widowed|separated)\\b.*",
    ],
    ['studies', "(?:'m|am|currently |is) ?(?:now )?studying (.+)"],
    [
      'budget',
      "(?:can|could|want to|'d like to|would like to|plan to|'m willing to|am willing to|'ll|will) (?:only )?(?:spend|pay|invest) (.{0,20}(?:\\d|[$€£]).*)",
    ],
    [
      'budget',
      "(?:'ve|have)(?: got)? (?:about |around |roughly |only |up to )*([$€£]? ?\\d[\\d.,]* ?(?:k|eur|usd|gbp|euros?|dollars?|pounds|bucks)?) (?:to spend|for (?:this|the|it)\\b).*",
    ],
    [
      'appointment.*',
      "(?:'ve|have)(?: got)? (?:an? |my )*((?:[\\w'-]{2,20} ){0,2}(?:appointment|check-?up|interview|exam)\\b.*)",
    ],
    [
      'deadline.*',
      `(?:(?:need|needs|have|has|want|'ve got|plan|hope|aim|'re going|'m going)(?: this| it| everything)? to|must|should|'ll|will) ([^.]{1,80}?) (?:by|before|no later than) ${date}.*`,
    ],
    [
      'deadline',
      `(?:'ve|have|'ve got)(?: got)? (?:an? |my |our |the )?(?:[\\w-]{1,20} )?(?:deadline|due date) (?:of|on|for|by) (.+)`,
    ],
  ],
  decisions:
    "let's (?:just |all |both |definitely |instead |then |maybe )*(?:go (?:with|for)|use|stick (?:with|to)|choose|pick|take|meet (?:at|on|in)|adopt|cache|run|set|limit|cap|raise|schedule|switch (?:to|over to)|move to|settle (?:on|for)|drop|skip|rename|name it|call it|target|build|host|deploy|store|make it|do(?= the\\b)|book|keep(?= (?:the|using)\\b)|start with)|" +
    "(?:we|i)(?:'ve| have|'d| had)? (?:finally |now |both |all |already |just |also |then )*(?:decided(?: on| to(?: go with| use| switch to)?| that)?|agreed(?: on| to| that)?|chose|chosen|selected|settled on|opted(?: for| to)|committed to|finali[sz]ed|approved|switched (?:to|over to|from)|migrated (?:to|from)|picked(?! up\\b)|went with|booked)|" +
    "(?:we|i)(?:'ll| will|'re going to|'m going to| are going to| am going to) (?:just |definitely |then |now )*(?:use|go with|go for|stick (?:with|to)|switch to|adopt|choose|settle on|take|book)|" +
    "(?:we|i)(?:'re| are|'m| am) (?:now )?(?:going with|sticking (?:with|to)|switching (?:to|over to)|moving (?:to|over to)|migrating to)|" +
    "(?:we|i)(?:'ll| will)? (?:stay (?:on|with|at)|stick (?:with|to)|go (?:with|for)|keep(?= the\\b)|take(?= the\\b(?!.{0,80}\\b(?:every|each|usually|often|always|daily)\\b)))|" +
    '(?:the |our |my )?(?:final )?(?:decision|plan|choice)(?: is|:)(?: to| that)?|' +
    '(?:go|going) (?:with|for)|(?:please |just |always )*use|switch (?:to|over to)|stick (?:to|with)|move (?:over )?to',
  uses:
    "(?:we|i)(?:'re| are|'m| am)? (?:currently |now |already |mostly |also |both |all |only |still |no longer |don't |using |running |developing |coding |working )*(?:use|using|run|runs|running|on|in|with|have|develop(?:ing)? (?:on|in|with)|code in|write|deploy(?:ing)? (?:to|on|with)|host(?:ed|ing)? on|built (?:it )?(?:with|in|on)|test(?:ing)? with|build with|moved to|migrated to|switched to)|" +
    "(?:the|our|my|this) (?:[\\w-]{2,20} ){0,2}?(?:project|app|application|repo|repository|backend|back end|frontend|front end|server|service|site|website|api|code ?base|stack|database|db|pipeline|ci|client|tests?|bot|script|plugin|extension|machine|laptop|computer) (?:currently |now )*(?:uses?|runs? (?:on|with)|is (?:on|in|using|built (?:with|in|on)|written in|hosted on|deployed (?:to|on)|running(?: on)?|based on|a|an)|is|are (?:on|in|written in|run with)|lives? on|depends on)|using|with|it's (?:a|an|in|on|using)|built (?:with|in|on)|it (?:uses|runs on)",
  prohibitions:
    "(?:we|you|i|it|this|the [\\w-]{2,20}) (?:must|should|shall|can|may) (?:never|not)|(?:we|you) (?:mustn't|shouldn't)|(?:we|it|the [\\w-]{2,20}) (?:can't|cannot)|never|don't(?: ever)?|do not(?: ever)?|must not|avoid|refrain from|(?:i|we) (?:really |definitely |absolutely )?(?:don't|do not) (?:want|need|like) (?:any|you to)|(?:i|we) (?:don't|do not) (?:want|need) (?!to |it\\b|that\\b|this\\b|you\\b|help\\b)(?:the |a |an )?|there (?:should|must) (?:not |never )be|no more|stop (?=using|adding|writing|putting|including|sending|apologi|repeating|making|giving|calling)|without (?:any |using )",
  demands:
    '(?:(?:we|you) (?:must|should) )?always (?=(?:use|include|write|add|run|answer|reply|respond|ask|check|test|cite|explain|give|show|keep|make|start|end|provide|put|format|return|follow|mention|confirm|verify|validate|commit|document|name|sort|wrap|handle|log|prioriti[sz]e|avoid|consider|suggest|list|call|address|set|send|tell|treat|specify|state|highlight|offer|focus|ensure|round|convert|translate|link|quote|note|remind|recommend|default|prefer|review|back up|store|close|encrypt|escape)\\b)|' +
    "(?:it|this|they|there|`[^`]{1,40}`|(?:the|each|every|all) (?:[\\w-]{2,20} ){1,3}?) ?should (?:also |always |only |just |all )*(?!be (?:fine|ok|good|easy|possible|able|great|interesting|fun|nice|enough|here|there|done|ready|back)\\b)(?=(?:be|have|support|take|use|work|return|show|accept|include|contain|stay|run|fit|read|write|print|default|allow|handle|go|live|cover|look|say|keep|list|start|end|cost|last|match|follow|output|error|fail)\\b)|(?:i|we)(?: also| only| really)*(?: want| need|'d like| would like) (?:[\\w'`./-]{1,30} ){1,6}?to (?=(?:be|have|contain|include|use|work|support|show|return|take|stay|look|run|store|feel|fit|cover|focus|read|sound)\\b)|(?:i|we) (?:only want|want only|only need|need only)|(?:i|we)(?:'d| would) like to (?=(?:stay|keep|avoid|use)\\b)|make sure (?:that )?(?=(?:the|all|every|each|it|there|to|we) )|(?:we|you) (?:must|have to) (?=(?:keep|stay|use|support|be|avoid|run|have|ensure|include|comply|follow|finish)\\b)|(?:my|our|the) (?:only |one |main |golden |first )?rules?(?: [\\w -]{1,30})?(?: is|:)|(?:[\\w-]{3,20} ){1,4}?must (?=(?:never|not|always|be|stay|remain)\\b)|" +
    '(?:it|this|that|everything|all (?:the )?[\\w-]{2,20}|every [\\w-]{2,20}|each [\\w-]{2,20}|any [\\w-]{2,20}|(?:the|our) (?:[\\w-]{2,20} ){1,3}?)(?: (?:really|absolutely|all))* ?(?:must|has to|have to|needs to|need to) (?!have (?:been|cost|had|taken|\\w+ed)\\b)(?!(?:go|know|admit|say|leave|think|look|see)\\b)(?:be |work |run |fit |support |stay |use |have |pass |comply |handle |fit |load |cost |finish |include |contain |remain |match |follow )',
  limits:
    'under|below|within|less than|fewer than|no (?:more|longer) than|not (?:more|longer) than|exceed(?: the)?|at most|max(?:imum)?(?: of)?|up to|at least|over|above|to (?:at most |under |a maximum of )?|min(?:imum)?(?: of)?|exactly|between \\d+ and',
  units:
    '(?:a|per) (?:month|day|week|year|night|head|person|hour)|words?|characters?|chars|sentences?|paragraphs?|pages?|lines?|bullet points?|bullets|points|minutes?|hours?|seconds?|ms|days?|weeks?|months?|euros?|eur|usd|dollars?|pounds|kb|mb|gb|tokens?|percent|%|columns|spaces|items|slides|people|guests|calories|kcal|km|cm|mm|m|metres?|meters?|miles|kg|g',
  preferences: "(?:i|we)(?:'d| would)? (?:prefer|rather have|rather use)",
  topics: [],
  habits:
    "(?:i|we)(?:'m| am|'re| are)? (?:can't|cannot|can not|can only|could never|never|only|always|don't|do not) (?=(?:take|pick up|eat|drink|lift|come|attend|work|walk|travel|fly|drive|use|answer|call|meet|afford|pay|host|do|accept|sell|offer|ship|deliver|serve|allow|deploy|smoke|home|available|free|there|reachable|cook|bike|cycle|run|train|sleep|buy|wear|write|speak|sit|stand|swim|climb)\\b)|(?:i'm|i am|we're|we are) (?:never|not|only) (?=(?:home|available|free|reachable|in the office|around)\\b)",
  lasting: 'from now on|going forward|in future|in the future|every time|each time|until further notice',
  reschedules:
    "(?:i|we)(?:'ve| have|'re| are|'ll| will|'m| am|'d| had to| have to| need to| must)? ?(?:just |now |had to |have to |need to |to )*(?:mov(?:e|ed|ing)|push(?:ed|ing)?|postpon(?:e|ed|ing)|shift(?:ed|ing)?|reschedul(?:e|ed|ing)|delay(?:ed|ing)?|chang(?:e|ed|ing)|bring|brought|raise[d]?|lower(?:ed)?|cut|increas(?:e|ed)) (?:the |our |my |back |forward )*(?<noun>[\\w -]{2,40}?) (?:back |forward |up |down |out )?(?:to|until|from [\\w ]{1,20} to) (?=.*(?:\\d|day\\b))",
  newOne: "(?:(?:the |my |our )?new one|it)(?:'s| is|'ll be| will be)(?: now| on| at)*",
  names:
    "(?:you can |just )*(?:call me|my name is|my name's|i go by|i'm called|i am called)(?: just| simply| now| actually)*",
}
