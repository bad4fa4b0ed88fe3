import type { LanguageRules } from './language.ts'

export const portuguese: LanguageRules = {
  code: 'pt',
  markers:
    'eu me de te meu minha meus minhas um uma para com em nao por que estou sou tenho moro ao dos das nosso nossa mas voce muito ja tambem ola obrigado obrigada agora isso pelo prefiro na mudei sempre nunca palavras o da',
  openings:
    'eu|nos|meu|minha|meus|minhas|nosso|nossa|por favor|ele|ela|voce|tu|isso|isto|pode|podes|poderia|me chame|chama-me|lembre|moro|tenho|trabalho|sou|estou|prefiro|vamos|obrigad[oa]|o|a|os|as|nao',
  commaOpenings: 'sem|como|que|quem|onde|se|quando|porque|nunca|sempre|mas|entao|depois|use|usa|responda|agora',
  conjunctions: 'mas|porque|embora|ja que|a menos que|porem',
  coordinators: 'e|ou|entao|depois',
  leadIns:
    'mud(?:ei|amos) de (?:ideia|opiniao)|e|mas|entao|ah|oh|bom|bem|sim|ok|ola|oi|obrigad[oa]|a proposito|alias|na verdade|afinal|no final|por favor|agora|a partir de agora|daqui em diante|de agora em diante|no futuro|para sua informacao|info|correcao|como disse|acho que|penso que|melhor|ou melhor|tambem',
  hypothetical: 'se|suponha|suponhamos|imagine|imaginemos|caso|talvez|quando|quem dera',
  questions:
    'pode|podes|poderia|poderias|devo|deveria|e possivel|como|que|qual|quais|quem|onde|quando|por que|porque e que|quanto|quanta|quantos|quantas|ha',
  reporting:
    'diz|disse|me disse|disse-me|nos disse|escreve|escreveu|conta|contou|afirma|afirmou|pergunta|perguntou|responde|respondeu|por exemplo|p\\. ?ex\\.?|exemplo|como',
  negation: 'nao|nunca|jamais|nenhum|nenhuma|sem|nada|nem|alergico|alergica|alergia|odeio|evite',
  wish: 'prefiro|preferimos|gosto|gostamos|adoro|amo|quero|queremos|gostaria|odeio|uso|use|usamos|sempre|nunca|por favor|chame|chama|responda|responde|escreva|evite|preciso|vegano|vegana|vegetariano|vegetariana|favorito|favorita|preferido|preferida',
  change:
    'melhor|em vez de|em vez disso|no lugar de|mudei de ideia|mudamos de ideia|ja nao|nao [\\w ]{1,20} mais|afinal|correcao|agora|novo|nova|mudei|mudamos|adiad[oa]|alterad[oa]|movid[oa]|antecipad[oa]|na verdade',
  notNames:
    'segunda|terca|quarta|quinta|sexta|sabado|domingo|segunda-feira|terca-feira|quarta-feira|quinta-feira|sexta-feira|janeiro|fevereiro|marco|abril|maio|junho|julho|agosto|setembro|outubro|novembro|dezembro|jan|fev|mar|abr|mai|jun|jul|ago|set|out|nov|dez|senhor|senhora|sr|sra|ola|oi|obrigado|obrigada|portugues|ingles',
  capitalsAreNames: true,
  reminder:
    '(?:lembre-se|lembra-te|lembre|lembra|recorda|recorde)(?: por favor| bem)*(?: de)?(?: que|:)?|nao (?:se esqueca|te esquecas|esqueca|esquecas)(?: de)?(?: que|:)|(?:anote|anota|tome nota|toma nota|tenha em conta|tem em conta|leve em conta)(?: por favor)?(?: de)?(?: que|:)|importante:',
  bareReminder:
    '(?:lembre-se|lembra-te|lembre|anote|anota|guarde) (?:disso|disto|isso|isto)(?: por favor)?|nao (?:se esqueca|te esquecas|esqueca) (?:disso|disto)',
  nounFirst: true,
  possessive: '(?:[oa]s? )?(?:meus?|minhas?|nossos?|nossas?)',
  article: 'o|a|os|as',
  copula:
    '(?:e|sao|era|sera|se chama|chama-se|fica em|(?:foi|esta) (?:adiad[oa]|alterad[oa]|movid[oa]|antecipad[oa]|transferid[oa]|mudad[oa]) para(?: [oa])?|passou (?:para(?: [oa])?|a ser)|mudou para(?: [oa])?)(?: (?:agora|atualmente|na verdade|afinal|o|a|os|de|do|dia|em|no|na|para))*',
  fillers: 'nov[oa]s?|atual|antig[oa]|corret[oa]|verdadeir[oa]|propri[oa]|ultim[oa]|primeir[oa]',
  vagueNouns: 'problema|pergunta|duvida|erro|ideia|opiniao|codigo|objetivo|resultado|resposta|impressao|proposta|plano',
  attributes: {
    order_number: 'numero (?:do|de) (?:pedido|encomenda)|numero da encomenda',
    customer_number: 'numero de cliente',
    booking_number: '(?:numero|codigo) (?:da|de) reserva',
    invoice_number: 'numero da (?:fatura|nota)',
    ticket_number: 'numero do (?:ticket|chamado|caso)|protocolo',
    contract_number: 'numero (?:do contrato|da apolice)',
    iban: 'iban|numero da conta',
    phone: 'numero(?: de (?:telefone|telemovel|celular))?|telefone|telemovel|celular',
    email: 'e-?mail|correio eletronico|endereco de e-?mail',
    address: '(?:endereco|morada)(?: de entrega| de faturacao)?',
    name: 'nome',
    birthday: 'aniversario|data de nascimento',
    deadline: 'prazo|data limite|data de entrega|entrega|deadline',
    appointment: 'consulta|compromisso',
    meeting: 'reuniao',
    budget: 'orcamento',
    topic: 'tema|titulo',
    job: 'profissao|trabalho|cargo',
    employer: 'empresa|empregador',
    home: 'cidade',
    port: 'porta',
    host: 'servidor|host',
    version: 'versao',
    database: 'base de dados|banco de dados',
    blood_type: 'tipo sanguineo|grupo sanguineo',
    wedding: 'casamento',
    flight: 'voo|voo de volta',
    trip: 'viagem',
  },
  relations: {
    wife: 'mulher|esposa',
    husband: 'marido|esposo',
    partner: 'namorad[oa]|companheir[oa]|parceir[oa]',
    mother: 'mae',
    father: 'pai',
    sister: 'irma',
    brother: 'irmao',
    son: 'filho',
    daughter: 'filha',
    child: 'filhos',
    friend: 'amig[oa]',
    boss: 'chefe|gerente|patrao|patroa',
    colleague: 'colega',
    tutor: 'tutora?|orientadora?|professora?|treinadora?',
    doctor: 'medic[oa]|doutora?',
    dog: 'cao|cadela|cachorr[oa]',
    cat: 'gat[oa]',
  },
  subject: '(?:(?:eu|nos|a gente) )?',
  statements: [
    ['home', '(?:ja nao |nao )?(?:moro|mora|moramos|vivo|vive|vivemos)(?: agora| atualmente| mais)* (?:em|no|na) (.+)'],
    [
      'home',
      '(?:me mudei|mudei-me|mudei|mudamos|nos mudamos|mudamo-nos|vou me mudar|vou mudar-me|vamos nos mudar)(?: recentemente| agora)? para (?:o |a )?(.+)',
    ],
    [
      'employer',
      '(?:ja nao |nao )?(?:trabalho|trabalha|trabalhamos)(?: agora| atualmente| mais)* (?:em|na|no|para a?) (.+)',
    ],
    ['job', '(?:trabalho|trabalha)(?: agora)? como (.+)'],
    ['origin', '(?:sou|e|somos|venho)(?: natural)? (?:de|do|da) (.+)'],
    ['age', '(?:tenho|tem)(?: ja)? (\\d{1,3} anos)'],
    ['birthplace', '(?:nasci|nasceu) (?:em|no|na|a) (.+)'],
    ['allergy.*', '(?:ja nao )?(?:sou|e|somos)(?: muito| tambem)* alergic[oa]s? (?:ao|a|aos|as) (.+)'],
    ['allergy.*', '(?:tenho|tem) (?:tambem )?(?:uma )?alergia (?:ao|a|aos|as) (.+)'],
    [
      'medication.*',
      '(?:tomo|toma) (?:tambem |agora )?(.*?(?<!\\d)\\d+ ?(?:mg|ml|comprimidos?).*|.+ (?:por dia|todos os dias|de manha|a noite|diariamente))',
    ],
    [
      'condition.*',
      '(?:tenho|tem|sofro|padeco)(?: de)? ((?:diabetes|asma|tdah|enxaquecas?|epilepsia|hipertensao|doenca celiaca|artrite|eczema).*)',
    ],
    [
      'diet',
      '(?:ja nao )?(?:sou|e|somos)(?: agora| estritamente)* ((?:vegan[oa]s?|vegetarian[oa]s?|celiac[oa]|intolerante a lactose|halal|kosher))',
    ],
    ['language_spoken.*', '(?:falo|fala|falamos)(?: tambem| bem| um pouco de)* ([a-z]+(?: e [a-z]+)?)'],
    [
      'marital_status',
      '(?:ja nao )?(?:sou|estou|somos)(?: agora)? (casad[oa]s?|divorciad[oa]s?|solteir[oa]|noiv[oa]s?|viuv[oa])',
    ],
    ['studies', 'estud(?:o|a|amos)(?: agora)? (.+)'],
    [
      'pets.*',
      '(?:tenho|temos|tem) (?:um|uma|dois|duas|tres|\\d) ((?:caes|cao|cachorr[oa]s?|gat[oa]s?|filh[oa]s?)\\b.*)',
    ],
    ['budget', '(?:posso|podemos|quero|queremos) gastar (?:no maximo |ate |nao mais de )?(.+)'],
    ['appointment.*', '(?:tenho|temos) (?:uma )?(?:consulta|reuniao|um compromisso) (.+)'],
    [
      'deadline.*',
      '(?:tenho que|temos que|tenho de|temos de|preciso|precisamos|devo) (.{1,60}?)(?:ate|antes de) (?:o dia |a |o |ao? )?(?:.{0,30}\\d|segunda|terca|quarta|quinta|sexta|sabado|domingo).*',
    ],
  ],
  decisions:
    '(?:vamos (?:usar|com|de|escolher|ficar com)|decidi(?:mos)?|escolhi|escolhemos|optei por|optamos por|ficamos com|fico com|usaremos|usarei|vou usar|mudamos para|reservei|reservamos|use|usa|escolha)(?: melhor| entao| afinal)*',
  uses: '(?:usamos|uso|utilizamos|utilizo|trabalhamos com|trabalho com|estamos no|estou no)|(?:o projeto|o app|a aplicacao|o backend|o frontend|o servidor) (?:usa|utiliza|roda (?:em|no)|corre (?:em|no)|esta (?:em|escrito em))',
  prohibitions:
    'sem (?!doute|probleme|souci|duda|problema|duvida|zweifel|problem|twijfel)|(?:nunca|jamais)|nao (?:use|uses|utilize|escreva|coloque|faca|inclua|quero|queremos|mencione|envie|me envie|ligue)|evite|sem nenhum[a]?',
  demands: 'sempre|(?:use|escreva|responda|mostre|inclua|coloque|de-me|me de) sempre',
  limits: 'menos de|no maximo|maximo|nao mais (?:de|que)|ate|pelo menos|abaixo de',
  units:
    'palavras|caracteres|frases|paginas?|linhas|minutos|horas|dias|euros?|reais|dolares|por cento|pontos|paragrafos',
  preferences:
    '(?:prefiro|preferimos|gosto(?: mais)? d[eoa]s?|gostamos d[eoa]s?|adoro|nao gosto d[eoa]s?|odeio)|minha preferencia e',
  topics: [
    ['theme', '\\b(?:modo|tema) (escuro|claro|noturno)'],
    [
      'language',
      '\\b(?:responda|responde|escreva|escreve|fale|fala)(?:-me)?(?: sempre| so)? em (portugues|ingles|frances|alemao|italiano|espanhol|neerlandes)',
    ],
    ['length', '\\brespostas (curtas|breves|concisas|longas|detalhadas)'],
    ['length', '\\b(?:seja|sejas|responda)(?: mais)? (breve|conciso|concisa|brevemente)'],
  ],
  habits:
    '(?:so|nao|apenas) (?:posso|podemos|como|comemos|bebo|bebemos|trabalho|trabalhamos|faco|fazemos|vendo|vendemos|aceito|aceitamos) (?=\\w)|nunca (?:como|bebo|trabalho|faco|aceito|estou) (?=\\w)',
  lasting: 'a partir de agora|de agora em diante|daqui em diante|cada vez|no futuro',
  reschedules:
    '(?:vamos |tivemos de |tivemos que )?(?:adi|mud|pass|antecip|alter)\\w{1,6} (?:o |a |os |as |noss[oa] |meu |minha )?(?<noun>[\\w -]{2,40}?) (?:para o|para a|para) (?=.*(?:\\d|feira\\b))',
  newOne: '(?:o novo|a nova) e',
  names:
    '(?:me chamo|chamo-me|(?:o )?meu nome e|me chame(?: de)?|chama-me|trata-me por|pode me chamar de|sou (?:o|a))(?: so| apenas| agora)*',
}
