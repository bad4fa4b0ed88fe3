import type { LanguageRules } from './language.ts'

export const spanish: LanguageRules = {
  code: 'es',
  markers:
    'yo mi me de te mis el la los las es y una para con en por que estoy soy tengo vivo del al lo pero nuestro nuestra muy ya si nos hola gracias ahora puedes quiero tambien siempre nunca uses usa menos palabras voy he hemos',
  openings:
    'yo|nosotros|mi|mis|nuestro|nuestra|por favor|el|ella|tu|usted|eso|esto|puedes|podrias|llamame|recuerda|vivo|tengo|trabajo|soy|estoy|me llamo|prefiero|vamos|gracias|la|los|las|no',
  commaOpenings:
    'sin|como|que|quien|donde|si|cuando|porque|nunca|siempre|pero|asi que|entonces|luego|usa|mejor|responde|ahora',
  conjunctions: 'pero|porque|aunque|sino|ya que|a menos que',
  coordinators: 'y|o|entonces|luego|asi que',
  leadIns:
    'asi que|he cambiado de (?:opinion|idea)|cambie de (?:opinion|idea)|y|pero|entonces|ah|oh|bueno|pues|ok|vale|hola|gracias|por cierto|en realidad|al final|por favor|ahora|a partir de ahora|de ahora en adelante|en adelante|en el futuro|para tu informacion|info|correccion|como dije|creo que|pienso que|mejor|mejor dicho|tambien|yo',
  hypothetical: 'si|supon|supongamos|imagina|imaginemos|en caso de|quizas?|tal vez|cuando|ojala',
  questions:
    'puedes|puede|podrias|podria|es posible|debo|deberia|como|que|cual|cuales|quien|donde|cuando|por que|cuanto|cuanta|cuantos|cuantas|hay',
  reporting:
    'dice|dijo|me dijo|nos dijo|escribe|escribio|cuenta|conto|afirma|pregunta|pregunto|responde|respondio|por ejemplo|p\\. ?ej\\.?|ejemplo|como',
  negation: 'no|nunca|jamas|ningun|ninguna|sin|nada|ni|tampoco|alergico|alergica|alergia|odio|evita',
  wish: 'prefiero|preferimos|gusta|gustan|encanta|quiero|queremos|quisiera|odio|uso|usa|usamos|siempre|nunca|por favor|llamame|responde|escribe|evita|necesito|vegano|vegana|vegetariano|vegetariana|favorito|favorita|preferencia',
  change:
    'mejor|en vez de|en lugar de|cambie de opinion|cambiado de opinion|cambiado de idea|ya no|al final|correccion|ahora|nuevo|nueva|mudado|mude|mudamos|aplazad[oa]|pospuest[oa]|cambiad[oa]|movid[oa]|adelantad[oa]|en realidad',
  notNames:
    'lunes|martes|miercoles|jueves|viernes|sabado|domingo|enero|febrero|marzo|abril|mayo|junio|julio|agosto|septiembre|octubre|noviembre|diciembre|ene|feb|abr|ago|sept|oct|nov|dic|senor|senora|sr|sra|hola|gracias|espanol|ingles|frances',
  capitalsAreNames: true,
  reminder:
    '(?:recuerda|recuerde|acuerdate|recordad)(?: por favor| bien)*(?: de)?(?: que|:)?|no (?:olvides|te olvides|olvide)(?: de)?(?: que|:)|(?:anota|apunta|anote|apunte|ten en cuenta|tenga en cuenta)(?: por favor)?(?: que|:)|importante:',
  bareReminder:
    '(?:recuerda|anota|apunta)(?:lo| eso| esto)(?: por favor)?|acuerdate de (?:eso|esto)|no (?:lo olvides|olvides (?:eso|esto)|te olvides de (?:eso|esto))',
  nounFirst: true,
  possessive: 'mis?|nuestr[oa]s?',
  article: 'el|la|los|las',
  copula:
    '(?:es|son|era|sera|se llama|esta en|(?:ha sido|fue|se ha|se) (?:aplazad[oa]|pospuest[oa]|cambiad[oa]|movid[oa]|adelantad[oa]|trasladad[oa]|movio|cambio|aplazo|pospuso|traslado) (?:al|a|para el|hasta el)|pasa (?:del [\\w ]{1,15} )?al?|queda en)(?: (?:ahora|actualmente|en realidad|finalmente|el|la|los|de|del|al|a|en|para el))*',
  fillers: 'nuev[oa]s?|actual|antigu[oa]|correct[oa]|verdader[oa]|propi[oa]|ultim[oa]|primer[oa]?',
  vagueNouns: 'problema|pregunta|duda|error|idea|opinion|codigo|objetivo|resultado|respuesta|impresion|propuesta|plan',
  attributes: {
    order_number: 'numero de (?:pedido|orden)',
    customer_number: 'numero de cliente',
    booking_number: 'numero de reserva|codigo de reserva|localizador',
    invoice_number: 'numero de factura',
    ticket_number: 'numero de (?:ticket|caso|incidencia)',
    contract_number: 'numero de (?:contrato|poliza)',
    iban: 'iban|numero de cuenta',
    phone: 'numero(?: de (?:telefono|movil|celular))?|telefono|movil|celular',
    email: '(?:correo(?: electronico)?|e-?mail|direccion de correo(?: electronico)?)',
    address: 'direccion(?: postal| de envio| de facturacion)?|domicilio',
    name: 'nombre',
    birthday: 'cumpleanos|fecha de nacimiento',
    deadline: 'fecha limite|plazo|fecha de entrega|entrega|deadline',
    appointment: 'cita|cita (?:medica|con el \\w+)',
    meeting: 'reunion',
    budget: 'presupuesto',
    topic: 'tema|titulo',
    job: 'profesion|trabajo|puesto',
    employer: 'empresa|empleador',
    home: 'ciudad',
    port: 'puerto',
    host: 'servidor|host',
    version: 'version',
    database: 'base de datos',
    blood_type: 'grupo sanguineo|tipo de sangre',
    wedding: 'boda',
    flight: 'vuelo|vuelo de vuelta',
    trip: 'viaje',
  },
  relations: {
    wife: 'mujer|esposa',
    husband: 'marido|esposo',
    partner: 'pareja|novia|novio',
    mother: 'madre|mama',
    father: 'padre|papa',
    sister: 'hermana',
    brother: 'hermano',
    son: 'hijo',
    daughter: 'hija',
    child: 'hijos|ninos',
    friend: 'amig[oa]',
    boss: 'jef[ea]|gerente',
    colleague: 'colega|companer[oa](?: de trabajo)?',
    tutor: 'tutora?|directora?|entrenadora?|profesora?',
    doctor: 'medic[oa]|doctora?',
    dog: 'perr[oa]',
    cat: 'gat[oa]',
  },
  subject: '(?:(?:yo|nosotros) )?',
  statements: [
    ['home', '(?:ya no )?(?:vivo|vive|vivimos|resido)(?: ahora| actualmente| todavia)* en (.+)'],
    [
      'home',
      '(?:me mude|nos mudamos|me he mudado|nos hemos mudado|me mudo|nos vamos a mudar|se mudo) (?:hace poco |ahora |recientemente )?a (.+)',
    ],
    ['employer', '(?:ya no )?(?:trabajo|trabaja|trabajamos)(?: ahora| actualmente)* (?:en|para) (.+)'],
    ['job', '(?:trabajo|trabaja)(?: ahora)? (?:como|de) (.+)'],
    ['origin', '(?:soy|es|somos|vengo)(?: originari[oa])? de (.+)'],
    ['age', '(?:tengo|tiene)(?: ya)? (\\d{1,3} anos)'],
    ['birthplace', '(?:naci|nacio) (?:en|el) (.+)'],
    ['allergy.*', '(?:ya no )?(?:soy|es|somos)(?: muy| tambien)* alergic[oa]s? (?:al|a los|a las|a la|a) ?(.+)'],
    ['allergy.*', '(?:tengo|tiene) (?:tambien )?(?:una )?alergia (?:al|a los|a las|a la|a) ?(.+)'],
    [
      'medication.*',
      '(?:tomo|toma) (?:tambien |ahora )?(.*?(?<!\\d)\\d+ ?(?:mg|ml|pastillas?|comprimidos?).*|.+ (?:al dia|cada dia|todos los dias|por la manana|por la noche|diariamente))',
    ],
    [
      'condition.*',
      '(?:tengo|tiene|sufro|padezco)(?: de)? ((?:diabetes|asma|tdah|migranas?|epilepsia|hipertension|celiaquia|artritis|eczema).*)',
    ],
    [
      'diet',
      '(?:ya no )?(?:soy|es|somos|como)(?: ahora| estrictamente)* ((?:vegan[oa]s?|vegetarian[oa]s?|celiac[oa]|sin gluten|intolerante a la lactosa|halal|kosher))',
    ],
    ['language_spoken.*', '(?:hablo|habla|hablamos)(?: tambien| bien| un poco de)* ([a-z]+(?: y [a-z]+)?)'],
    [
      'marital_status',
      '(?:ya no )?(?:estoy|estamos|soy)(?: ahora)? (casad[oa]s?|divorciad[oa]s?|solter[oa]|comprometid[oa]s?|viud[oa])',
    ],
    ['studies', 'estudi(?:o|a|amos)(?: ahora)? (.+)'],
    ['pets.*', '(?:tengo|tenemos|tiene) (?:un|una|dos|tres|\\d) ((?:perr[oa]s?|gat[oa]s?|hij[oa]s?|nin[oa]s?)\\b.*)'],
    ['budget', '(?:puedo|podemos|quiero|queremos) gastar (?:como maximo |hasta |no mas de )?(.+)'],
    ['appointment.*', '(?:tengo|tenemos) (?:una )?(?:cita|reunion|consulta) (.+)'],
    [
      'deadline.*',
      '(?:tengo que|tenemos que|debo|debemos|hay que) (.{1,60}?)(?:antes del?|para el|hasta el) (?:.{0,30}\\d|lunes|martes|miercoles|jueves|viernes|sabado|domingo).*',
    ],
  ],
  decisions:
    '(?:vamos (?:a usar|con|a elegir|a por)|usemos|elijamos|(?:hemos|he) (?:decidido|elegido|optado por|reservado)|decidimos|decidi|elegimos|elegi|optamos por|nos quedamos con|me quedo con|usaremos|usare|voy a usar|cambiamos a|cambiemos a|reservamos|usa|elige|quedemonos con)(?: mejor| al final| entonces)*',
  uses: '(?:usamos|uso|utilizamos|utilizo|trabajamos con|trabajo con|estamos en|estoy en)|(?:el proyecto|la app|la aplicacion|el backend|el frontend|el servidor) (?:usa|utiliza|corre en|funciona (?:con|en)|esta (?:en|escrito en))',
  prohibitions:
    'sin (?!doute|probleme|souci|duda|problema|duvida|zweifel|problem|twijfel)|(?:nunca|jamas)|no (?:uses|use|utilices|escribas|pongas|hagas|incluyas|anadas|quiero|queremos|menciones|envies|me envies|llames|despliegues)|evita|sin ningun[oa]?',
  demands: 'siempre|(?:usa|escribe|responde|dame|muestra|pon|incluye|anade) siempre|hay que siempre',
  limits:
    'pasar de|superar l[ao]s|exceder(?: l[ao]s)?|menos de|como maximo|maximo|no mas de|hasta|al menos|por debajo de',
  units:
    'palabras|caracteres|frases|oraciones|paginas?|lineas|minutos|horas|dias|euros?|pesos|dolares|por ciento|puntos|parrafos',
  preferences: '(?:prefiero|preferimos|me gustan?|nos gustan?|me encantan?|no me gustan?|odio|adoro)|mi preferencia es',
  topics: [
    ['theme', '\\b(?:modo|tema) (oscuro|claro|nocturno)'],
    [
      'language',
      '\\b(?:responde|respondeme|contesta|escribe|habla|hablame|hablar|escribir)(?: siempre| solo)? en (espanol|ingles|frances|aleman|italiano|portugues|neerlandes|castellano)',
    ],
    ['length', '\\brespuestas (cortas|breves|concisas|largas|detalladas)'],
    ['length', '\\b(?:se|sea|responde)(?: mas)? (breve|conciso|concisa|brevemente)'],
    ['address_form', '\\b(tuteame|tutea)\\b'],
  ],
  habits:
    '(?:solo|no) (?:puedo|podemos|como|comemos|bebo|bebemos|trabajo|trabajamos|hago|hacemos|vendo|vendemos|acepto|aceptamos) (?=\\w)|nunca (?:como|bebo|trabajo|hago|acepto|salgo|estoy) (?=\\w)',
  lasting: 'a partir de ahora|de ahora en adelante|en adelante|cada vez|en el futuro',
  reschedules:
    '(?:hemos |he |vamos a |tenemos que )?(?:aplaz|pospon|mov|cambi|retras|adelant|pas)\\w{1,6} (?:el |la |los |las |nuestr[oa] |mi )?(?<noun>[\\w -]{2,40}?) (?:al|a|para el|hasta el|del [\\w ]{1,20} al) (?=.*(?:\\d|es\\b))',
  newOne: '(?:el nuevo|la nueva) es',
  names: '(?:me llamo|mi nombre es|llamame|puedes llamarme|soy)(?: simplemente| solo| ahora)*',
}
