import { runSync, type Work } from '../domain/work.ts'

/** Kinds of values; only values of the same kind can stand for each other. */
export type ValueKind = 'date' | 'weekday' | 'time' | 'number'

/** A value in a text, in normal form. */
export type Value = {
  readonly kind: ValueKind
  readonly text: string
  readonly start: number
  readonly end: number
  /** Possible readings: `14/03` is one of two dates, `1.234` one of two numbers. */
  readonly keys: readonly string[]
  /** Dimension of a number with a unit, such as `usd` or `minute`. */
  readonly dimension?: string
  /** Number before the conversion to the base unit, and its digits if it may be a telephone number. */
  readonly amounts?: readonly number[]
  readonly digits?: string
}

/** Names of the twelve months in six languages; in a text, three or more letters of them suffice. */
const monthNames = [
  'january januar janvier enero janeiro januari',
  'february februar février fevrier febrero fevereiro februari',
  'march märz maerz mars marzo março maart',
  'april avril abril',
  'may mai mayo maio mei',
  'june juni juin junio junho',
  'july juli juillet julio julho',
  'august août aout agosto augustus',
  'september septembre septiembre setembro',
  'october oktober octobre octubre outubro',
  'november novembre noviembre novembro',
  'december dezember décembre decembre diciembre dezembro',
]
const weekdayNames = [
  'sunday sonntag dimanche domingo zondag',
  'monday montag lundi lunes maandag',
  'tuesday dienstag mardi martes dinsdag',
  'wednesday mittwoch mercredi miércoles miercoles woensdag',
  'thursday donnerstag jeudi jueves donderdag',
  'friday freitag vendredi viernes vrijdag',
  'saturday samstag sonnabend samedi sábado sabado zaterdag',
]
const abbreviatedMonths = 'jan feb mar apr may jun jul aug sep oct nov dec'.split(' ')
const numberWordNames =
  'two zwei deux dos dois duas twee|three drei trois tres três drie|four vier quatre cuatro quatro|five fünf cinq cinco vijf|six sechs seis zes|seven sieben siete sete zeven|eight acht huit ocho oito|nine neun nueve nove negen|ten zehn dix diez dez tien|eleven elf onze|twelve zwölf douze doce doze twaalf|thirteen dreizehn treize trece treze dertien|fourteen vierzehn quatorze catorce catorze veertien|fifteen fünfzehn quinze quince vijftien|sixteen sechzehn seize zestien|seventeen siebzehn|eighteen achtzehn|nineteen neunzehn|twenty zwanzig vingt veinte vinte twintig'
const tensNames = 'thirty forty fifty sixty seventy eighty ninety'
/** Base unit of a dimension, factor and names. */
const unitRows = `usd 1 $ usd us$ dollar dollars
eur 1 € eur euro euros
gbp 1 £ gbp pound pounds
jpy 1 ¥ jpy yen
chf 1 chf francs franken
% 1 % percent prozent pct
minute 0.000016666667 ms
minute 0.016666666667 s sec secs second seconds sekunde sekunden secondes segundos
minute 1 min mins minute minutes minuten minutos
minute 60 h hr hrs hour hours stunde stunden std heure heures hora horas uur
minute 1440 day days tag tage tagen jour jours día días dia dias dag dagen night nights nächte
minute 10080 week weeks woche wochen semaine semaines semana semanas weken
month 1 month months monat monate monaten mois mes meses maand maanden
month 12 year years jahr jahre jahren ans année années año años ano anos jaar
gram 0.001 mg
gram 1 g gram grams gramm
gram 1000 kg kilo kilos
metre 0.01 cm
metre 0.001 mm
metre 1000 km kilometer kilometers kilometre kilometres
byte 1 kb
byte 1000 mb
byte 1000000 gb
byte 1000000000 tb`
const multiplierNames: Readonly<Record<string, number>> = {
  k: 1e3,
  thousand: 1e3,
  tsd: 1e3,
  tausend: 1e3,
  m: 1e6,
  mio: 1e6,
  million: 1e6,
  millions: 1e6,
  millionen: 1e6,
  bn: 1e9,
  billion: 1e9,
  mrd: 1e9,
}

const indexNames = (rows: readonly string[], first: number): ReadonlyMap<string, number> =>
  new Map(rows.flatMap((row, index) => row.split(' ').map((name) => [name, index + first] as const)))
const months = new Map([...indexNames(monthNames, 1), ...indexNames(abbreviatedMonths, 1), ['sept', 9] as const])
const weekdays = indexNames(weekdayNames, 0)
const numberWords = indexNames(numberWordNames.split('|'), 2)
const tens = new Map(tensNames.split(' ').map((name, index) => [name, 10 * (index + 3)] as const))
const units = new Map(
  unitRows.split('\n').flatMap((row) => {
    const [dimension = '', factor, ...names] = row.split(' ')
    return names.map((name) => [name, { dimension, factor: Number(factor) }] as const)
  }),
)

const alternatives = (names: Iterable<string>): string =>
  [...names]
    .sort((one, other) => other.length - one.length)
    .map((name) => name.replace(/[$.]/g, '\\$&'))
    .join('|')
const month = `(?:${alternatives(months.keys())})\\.?(?![\\p{L}\\p{N}])`
const day = '\\d{1,2}(?:st|nd|rd|th|er|º|\\.)?'
const before = '(?<![\\p{L}\\p{N}_.,/:-])'
const patterns: readonly (readonly [kind: ValueKind, pattern: RegExp])[] = [
  // A duration in two units.
  [
    'number',
    /(?<![\p{L}\p{N}_.,/:-])\d{1,3} ?(?:h|hrs?|hours?|std|stunden?|heures?|horas?|uur) (?:and |und |et |y |e |en )?\d{1,2} ?(?:m|min|mins|minut\p{L}{1,2})(?![\p{L}\p{N}])/giu,
  ],
  ['date', /(?<![\p{L}\p{N}_.,/:-])\d{4}[-/.]\d{1,2}[-/.]\d{1,2}(?!\d|[-/.]\d)/gu],
  ['date', /(?<![\p{L}\p{N}_.,/:-])\d{1,2}([./-])\d{1,2}(?:\1\d{4}|\1\d{2})(?!\d|[-/.]\d)/gu],
  ['date', /(?<![\p{L}\p{N}_.,/:-])\d{1,2}(?:\/\d{1,2}|\.\d{1,2}\.)(?!\d|[-/.]\d)/gu],
  [
    'date',
    new RegExp(
      `${before}${day}(?:(?: ?[-–] ?| (?:and|und|et|y|e|en|to|bis|&) )${day})? (?:of |de )?${month}(?:,? (?:de )?\\d{4}(?!\\d))?|(?<![\\p{L}\\p{N}_])${month} ${day}(?:(?: ?[-–] ?| (?:and|to|&) )${day})?(?![\\d:])(?:,? \\d{4}(?!\\d))?|(?<![\\p{L}\\p{N}_])${month} \\d{4}(?!\\d)`,
      'giu',
    ),
  ],
  ['weekday', new RegExp(`(?<![\\p{L}])(?:${alternatives(weekdays.keys())})(?=s?(?![\\p{L}]))`, 'giu')],
  [
    'time',
    /(?<![\p{L}\p{N}_.,/:-])(?:\d{1,2}(?:[:.]\d{2})? ?[ap]\.?m\b|\d{1,2}:\d{2}(?::\d{2})?|\d{1,2}(?:[:.]\d{2})? ?(?:uhr|o['’]clock)\b|\d{1,2} ?h(?: ?\d{2})?(?![\p{L}\d]))/giu,
  ],
  // Groups of digits: a telephone number, or a number with spaces between the thousands.
  ['number', /(?<![\p{L}\p{N}_.,:])\+?\(?\d{1,5}\)?(?:[ /-]\(?\d{1,8}\)?){1,5}(?![\p{L}\p{N}_])/gu],
  [
    'number',
    /(?<![\p{L}\p{N}_.]|[\p{L}]-)(?:(?:US\$|[$€£¥]) ?)?\d(?:[\d.,'’_]{0,30}\d)?(?:[\u00a0\u202f]\d{3}){0,4}(?:st|nd|rd|th)?(?: ?(?:%|[$€£¥])|[ \u00a0-]?\p{L}{1,11}(?:\$)?(?![\p{L}\p{N}]))?(?: (?:dollars?|euros?|pounds?|USD|EUR|GBP)\b)?/gu,
  ],
  [
    'number',
    new RegExp(
      `(?<![\\p{L}\\p{N}_])(?:${alternatives([...numberWords.keys(), ...tens.keys()])})(?![\\p{L}\\p{N}_])(?:[ -]\\p{L}{1,11}(?![\\p{L}\\p{N}]))?`,
      'giu',
    ),
  ],
]

/** Cost of parsing a value, in characters. */
const valueWork = 40

/**
 * Finds dates, weekdays, times of day and numbers with their units, in normal form and ordered by start. Understands
 * English, German, French, Spanish, Portuguese and Dutch.
 *
 * @example
 * findValues('$1,200 by March 14th').map(({ keys }) => keys) // [['usd:1200'], ['--03-14']]
 */
export const findValues = (text: string): readonly Value[] => runSync(findValuesInSteps(text))

/** `findValues` as interruptible work. */
export function* findValuesInSteps(text: string): Work<readonly Value[]> {
  const found: Value[] = []
  const isTaken = new Uint8Array(text.length)
  for (const [kind, pattern] of patterns) {
    let reached = 0
    for (const { 0: match, index } of text.matchAll(pattern)) {
      yield index - reached + valueWork
      reached = index
      const values = parse[kind](match, index, text).filter(({ keys }) => keys.length > 0)
      const [first] = values
      if (first === undefined || isTaken.subarray(first.start, first.end).includes(1)) continue
      isTaken.fill(1, first.start, first.end)
      found.push(...values)
    }
    yield text.length - reached
  }
  return found.sort((left, right) => left.start - right.start)
}

type ParseValue = (match: string, start: number, text: string) => readonly Value[]

const two = (value: number): string => String(value).padStart(2, '0')
const isDay = (monthNumber: number, dayNumber: number): boolean =>
  monthNumber >= 1 && monthNumber <= 12 && dayNumber >= 1 && dayNumber <= 31
const dateKey = (year: number | undefined, monthNumber: number, dayNumber: number): string =>
  `${year === undefined ? '-' : year < 100 ? 2000 + year : year}-${two(monthNumber)}-${two(dayNumber)}`

const parseDate: ParseValue = (matched, start) => {
  const match = matched.replace(/(?<=\p{L})\.$/u, '')
  const create = (keys: readonly string[]): Value => ({
    kind: 'date',
    text: match,
    start,
    end: start + match.length,
    keys,
  })
  const numbers = (match.match(/\d+/g) ?? []).map(Number)
  const name = (match.toLowerCase().match(/\p{L}{3,}/gu) ?? []).find((word) => months.has(word))
  // `1.4.` may be a number at the end of a sentence.
  if (name === undefined)
    return [
      create([...numericDateKeys(numbers), ...(/^\d+\.\d+\.$/.test(match) ? [`:${Number(match.slice(0, -1))}`] : [])]),
    ]
  const monthNumber = months.get(name) as number
  const last = numbers.at(-1) ?? 0
  const year = last > 31 ? last : undefined
  const days = numbers.filter((number) => number <= 31)
  if (days.length === 0) return [create([`${year}-${two(monthNumber)}`])]
  return days
    .filter((number) => isDay(monthNumber, number))
    .map((number) => create([dateKey(year, monthNumber, number)]))
}

/** Readings of a date in digits: year first, day first or month first. */
function numericDateKeys([first = 0, second = 0, third]: readonly number[]): readonly string[] {
  if (first > 31) return isDay(second, third ?? 0) ? [dateKey(first, second, third ?? 0)] : []
  return [
    ...(isDay(second, first) ? [dateKey(third, second, first)] : []),
    ...(isDay(first, second) && first !== second ? [dateKey(third, first, second)] : []),
  ]
}

const parseWeekday: ParseValue = (match, start) => [
  {
    kind: 'weekday',
    text: match,
    start,
    end: start + match.length,
    keys: [`weekday:${weekdays.get(match.toLowerCase())}`],
  },
]

const parseTime: ParseValue = (match, start) => {
  const [hours = 0, minutes = 0] = (match.match(/\d+/g) ?? []).map(Number)
  const value = { kind: 'time', text: match, start, end: start + match.length } as const
  if (hours > 24 || minutes > 59) return []
  const key = (hour: number): string => `${two(hour % 24)}:${two(minutes)}`
  const half = /([ap])\.?m$/i.exec(match)?.[1]?.toLowerCase()
  if (half !== undefined) return [{ ...value, keys: [key((hours % 12) + (half === 'p' ? 12 : 0))] }]
  return [{ ...value, keys: hours <= 12 && !match.startsWith('0') ? [key(hours), key(hours + 12)] : [key(hours)] }]
}

const parseNumber: ParseValue = (match, start, text) => {
  const word = /^\p{L}+/u.exec(match)?.[0].toLowerCase() ?? ''
  if (numberWords.has(word) || tens.has(word)) return [parseNumberWord(match, start, word)]
  const [hours, minutes] = /^\d+ ?\p{L}{1,8} (?:\p{L}{1,3} )?\d+ ?m/u.test(match)
    ? (match.match(/\d+/g) ?? []).map(Number)
    : []
  if (hours !== undefined && minutes !== undefined)
    return [
      {
        kind: 'number',
        text: match,
        start,
        end: start + match.length,
        keys: [`minute:${60 * hours + minutes}`],
        amounts: [60 * hours + minutes],
        dimension: 'minute',
      },
    ]
  const isListNumber = /^\d{1,2}$/.test(match) && /(?:^|\n)[ \t]*$/.test(text.slice(Math.max(0, start - 8), start))
  if (isListNumber && /^[.)] /.test(text.slice(start + match.length, start + match.length + 2))) return []
  const digits = match.replace(/\(0\)/g, '').replace(/\D/g, '')
  if (/^[+(\d][\d ()/-]*$/.test(match) && /\d[ ()/-]+\d/.test(match)) {
    const keys = [
      ...(digits.length >= 7 && digits.length <= 15 ? [`#${digits}`] : []),
      ...(/^\d{1,3}(?: \d{3})+$/.test(match) ? [`:${Number(digits)}`] : []),
    ]
    return [{ kind: 'number', text: match, start, end: start + match.length, keys, digits }]
  }
  const number = /\d(?:[\d.,'’_\u00a0\u202f]*\d)?/.exec(match)?.[0] ?? ''
  return [measure(match, start, readNumber(number), match.indexOf(number) + number.length, digits)]
}

function parseNumberWord(match: string, start: number, word: string): Value {
  const second = match.slice(word.length + 1).toLowerCase()
  const ones = numberWords.get(second) ?? (second === 'one' ? 1 : 0)
  const ten = tens.get(word) ?? (word === 'twenty' ? 20 : undefined)
  if (ten !== undefined && ones > 0 && ones < 10) return measure(match, start, [ten + ones], match.length, '')
  const amount = numberWords.get(word) ?? ten ?? 0
  return measure(match, start, second === 'hundred' ? [100 * amount] : [amount], word.length, '')
}

/** Adds multiplier and unit, which stand after `length` characters or before the number. */
function measure(match: string, start: number, amounts: readonly number[], length: number, digits: string): Value {
  const lower = match.toLowerCase()
  const after: readonly string[] = lower.slice(length).match(/[\p{L}$]+|[%€£¥]/gu) ?? []
  const symbol = /^(?:us\$|[$€£¥])/.exec(lower)?.[0]
  const factor = after.map((name) => multiplierNames[name]).find((found) => found !== undefined) ?? 1
  const unit = [...(symbol === undefined ? [] : [symbol]), ...after]
    .map((name) => units.get(name))
    .find((found) => found !== undefined)
  const isUsed = (name: string): boolean => units.has(name) || Object.hasOwn(multiplierNames, name)
  const isWholeUsed = after.length === 0 || after.some(isUsed)
  const end = start + (isWholeUsed ? match.length : length)
  // `m` stands for millions or metres.
  const scaled = amounts.flatMap((amount) => (after.includes('m') ? [amount, amount * factor] : [amount * factor]))
  const keys = scaled.map((amount) => `${unit?.dimension ?? ''}:${normalise(amount * (unit?.factor ?? 1))}`)
  return {
    kind: 'number',
    text: match.slice(0, end - start),
    start,
    end,
    keys,
    amounts: scaled,
    ...(unit === undefined ? {} : { dimension: unit.dimension }),
    ...(digits.length >= 7 ? { digits } : {}),
  }
}

const normalise = (amount: number): string => String(Number(amount.toPrecision(12)))

/** Readings of a number: the last separator is decimal, or all separate thousands. */
function readNumber(text: string): readonly number[] {
  const plain = text.replace(/['’_\u00a0\u202f]/g, '')
  const separators = plain.match(/[.,]/g) ?? []
  const last = separators.at(-1)
  if (last === undefined) return [Number(plain)]
  const whole = Number(plain.replace(/[.,]/g, ''))
  const decimal = Number(plain.replace(/[.,](?=[^.,]*[.,])/g, '').replace(',', '.'))
  const isGrouped = /[.,]\d{3}$/.test(plain)
  if (separators.length > 1 && separators.every((separator) => separator === last)) return [whole]
  return separators.length === 1 && isGrouped ? [whole, decimal] : [decimal]
}

const parse: Readonly<Record<ValueKind, ParseValue>> = {
  date: parseDate,
  weekday: parseWeekday,
  time: parseTime,
  number: parseNumber,
}

/** Normal forms of a telephone number: all digits, and those without a leading zero or country code. */
export function phoneForms(digits: string): readonly string[] {
  const bare = digits.replace(/^00/, '')
  const local = bare.replace(/^0/, '')
  return [bare, local, ...[1, 2, 3].map((length) => bare.slice(length))].filter((form) => form.length >= 7)
}
