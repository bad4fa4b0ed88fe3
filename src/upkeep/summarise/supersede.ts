import type { Work } from '../../domain/work.ts'
import { type Anchor, type AnchorKind, findAnchors } from '../../text/anchors.ts'
import { extractTerms } from '../../text/words.ts'
import { type Cue, findAbsent, findCues, findRetracted, findRetraction, findStopped, shiftsAll } from './cues.ts'
import type { Span } from './injectionCheck.ts'
import { reportSubject, reportsSuccess } from './outcomes.ts'
import { type Piece, pieceWork } from './pieces.ts'

/** Pieces with the same term that a new one is compared with, newest first. */
const maxComparedPieces = 24
/** Share of the words of the shorter statement that both must have. */
const minSharedFrame = 0.5

/** Words of a statement without its values, and its values by kind. */
type Statement = {
  readonly at: number
  readonly frame: ReadonlySet<string>
  readonly values: ReadonlyMap<string, AnchorKind>
  readonly retraction: 'strong' | 'weak' | undefined
  readonly isState: boolean
}

/** Removes statements and results that a later one replaces, and the sentences that refer to them. */
export function* dropSuperseded(pieces: readonly Piece[], isWork: boolean): Work<readonly Piece[]> {
  const dropped = new Set<number>()
  if (isWork) yield* dropOldReports(pieces, dropped)
  yield* dropSolvedFailures(pieces, dropped)
  yield* dropOldBalances(pieces, dropped)
  const isLogged = yield* createLogFinder(pieces)
  const byTerm = new Map<string, Statement[]>()
  const mentions = new Map<string, number[]>()
  let schedulesEnd = 0
  for (const [at, piece] of pieces.entries()) {
    if (!piece.isFiller) dropRetracted(pieces, at, mentions, dropped)
    if (shiftsAll(piece.text)) {
      yield* dropSchedules(pieces, [schedulesEnd, at], dropped)
      schedulesEnd = at
    }
    yield pieceWork(piece)
    const statement =
      piece.isFiller || piece.kind === 'output' || /\?$/.test(piece.text) ? undefined : parseStatement(piece, at)
    yield pieceWork(piece)
    if (statement === undefined) continue
    const mayReplace = (statement.retraction !== undefined || statement.isState) && !isLogged(piece)
    for (const earlier of mayReplace ? findRelated(statement, byTerm) : [])
      if (isReplacedBy(earlier, statement, pieces)) dropped.add(earlier.at)
    for (const term of statement.frame) {
      const known = byTerm.get(term)
      if (known === undefined) byTerm.set(term, [statement])
      else known.push(statement)
    }
  }
  return dropped.size === 0 ? pieces : pieces.filter((_, at) => !isDropped(pieces, dropped, at))
}

/** Sentences that differ in figures only are a log of events, not changes of one value, from this many on. */
const minLogPieces = 4

function* createLogFinder(pieces: readonly Piece[]): Work<(piece: Piece) => boolean> {
  const counts = new Map<string, number>()
  const formOf = ({ text }: Piece): string => text.replace(/\d+/g, '#')
  for (const piece of pieces) {
    const form = formOf(piece)
    counts.set(form, (counts.get(form) ?? 0) + 1)
    yield pieceWork(piece)
  }
  return (piece) => (counts.get(formOf(piece)) ?? 0) >= minLogPieces
}

/** True for a dropped piece and for one that refers to it in the same message. */
function isDropped(pieces: readonly Piece[], dropped: ReadonlySet<number>, at: number): boolean {
  for (let index = at; index >= 0; index--) {
    if (dropped.has(index)) return true
    const isSameMessage = pieces[index - 1]?.sources[0]?.message === pieces[index]?.sources[0]?.message
    if (pieces[index]?.needsPrevious !== true || !isSameMessage || at - index > 4) return false
  }
  return false
}

const failing =
  /\b(?:fail(?:s|ed|ing)|broken|breaks|does(?:n['’]t| not) work|crash(?:es|ed)|fehlgeschlagen|geht nicht|a échoué|falló|falhou|mislukt)\b/i

/** Drops reports of failures of something that a later report says works. */
function* dropSolvedFailures(pieces: readonly Piece[], dropped: Set<number>): Work<void> {
  const working = new Set<string>()
  for (let at = pieces.length - 1; at >= 0; at--) {
    const { text, isFiller } = pieces[at] as Piece
    yield pieceWork({ text })
    if (isFiller || /\?$/.test(text)) continue
    if (reportsSuccess(text)) for (const term of subjectTerms(text)) working.add(term)
    else if (working.size > 0 && failing.test(text) && subjectTerms(text).some((term) => working.has(term)))
      dropped.add(at)
  }
}

const balance =
  /\d[\d.,' ]{0,12}(?:[\p{L}€$£]{1,12} ){0,4}(?:remain|(?:is|are) left)(?!\p{L})|(?<!\p{L})(?:leaves|remaining|left:|bleib(?:en|t)|restent|il reste|quedan?|restam?|sobram?|resteert|resteren|blijft|blijven) (?:\p{L}{1,12} ){0,3}[€$£]?\d/iu

/** Keeps the last balance of each speaker: each `671 euros remain` replaces the one before. */
function* dropOldBalances(pieces: readonly Piece[], dropped: Set<number>): Work<void> {
  const reported = new Set<string>()
  for (let at = pieces.length - 1; at >= 0; at--) {
    const { text, speaker, isFiller } = pieces[at] as Piece
    yield pieceWork({ text })
    const found = isFiller || /\?$/.test(text) ? undefined : balance.exec(text)?.[0]
    if (found === undefined) continue
    const key = `${speaker} ${balanceUnit.exec(found)?.[0].toLowerCase() ?? ''}`
    if (reported.has(key)) dropped.add(at)
    reported.add(key)
  }
}

const balanceUnit = /euros?|dollars?|pounds?|hours?|days?|[€$£]/i

/** Drops the dated statements of an assistant, because all dates have changed. */
function* dropSchedules(pieces: readonly Piece[], [from, to]: Span, dropped: Set<number>): Work<void> {
  for (let at = from; at < to; at++) {
    const { text, isPerson } = pieces[at] as Piece
    if (!isPerson && (findAnchors(text).some(({ kind }) => kind === 'date') || text.search(foreignDay) >= 0))
      dropped.add(at)
    yield pieceWork({ text })
  }
}

const subjectTerms = (text: string): readonly string[] =>
  extractTerms(text).filter((term) => term.length >= 4 && !resultTerms.has(term) && !functionWords.has(term))
const resultTerms = new Set(
  extractTerms('works worked fixed resolved solved fails failed again today yesterday now time still fine'),
)

/** Keeps the last report on tests or a build; an error is dropped if a later report says that all is well. */
function* dropOldReports(pieces: readonly Piece[], dropped: Set<number>): Work<void> {
  const reported = new Set<string>()
  let isSolved = false
  for (let at = pieces.length - 1; at >= 0; at--) {
    const { text, isPerson, isFiller } = pieces[at] as Piece
    yield pieceWork({ text })
    if (isFiller || /\?$/.test(text)) continue
    const subject = reportSubject(text)
    if (subject !== undefined && reported.has(subject)) dropped.add(at)
    else if (subject !== undefined) reported.add(subject)
    if (isSolved && !isPerson && /\b(?:\w*error|exception|fail(?:s|ed|ing|ure)?|fatal|panic|broken)\b/i.test(text))
      dropped.add(at)
    isSolved ||= reportsSuccess(text)
  }
}

/** Drops earlier decisions, results and figures that a sentence says are no longer so. */
function dropRetracted(
  pieces: readonly Piece[],
  at: number,
  mentions: Map<string, number[]>,
  dropped: Set<number>,
): void {
  const { text } = pieces[at] as Piece
  const retracted: readonly (readonly [phrase: string, mayDrop: (piece: Piece) => boolean])[] = [
    ...[...findRetracted(text), ...findAbsent(text)].map((phrase) => [phrase, isChangeable] as const),
    ...findStopped(text).map((phrase) => [phrase, isPresentState] as const),
  ]
  for (const [phrase, mayDrop] of retracted) {
    const terms = [...new Set(extractTerms(phrase))].filter((term) => !updateWords.has(term)).slice(0, 6)
    const [first, ...rest] = terms.map((term) => mentions.get(term) ?? [])
    const places = first?.filter((place) => rest.every((others) => others.includes(place))) ?? []
    const isFigure = /^\d/.test(phrase.trim())
    for (const place of places.slice(-maxComparedPieces))
      if (isFigure || mayDrop(pieces[place] as Piece)) dropped.add(place)
  }
  for (const term of new Set(extractTerms(text))) {
    const places = mentions.get(term)
    if (places === undefined) mentions.set(term, [at])
    else if (places.length < maxMentions) places.push(at)
  }
}

const maxMentions = 200

/** True for a statement that may be taken back: a decision, a wish, an address, or what an assistant has arranged. */
function isChangeable({ text, isPerson, words }: Piece): boolean {
  const cues = findCues(text)
  return (
    !isPerson ||
    words <= 6 ||
    /\b(?:said yes|agreed)\b/i.test(text) ||
    ['decision', 'preference', 'constraint'].some((cue) => cues.includes(cue as Cue))
  )
}

const presentState =
  /(?<!\p{L})(?:(?:i|we) (?:now |currently |still |also ){0,2}(?:take|use|have|work)|ich (?:nehme|nutze|habe)|wir (?:nehmen|nutzen|haben)|je (?:prends|utilise)|tomo|uso|utilizo|ik (?:neem|gebruik)) /iu

/** True if a piece tells what a person takes, uses or has at present: `I take 2.5 mg of ramipril`. */
const isPresentState = ({ text }: Piece): boolean => presentState.test(text)

/** Verbs and nouns that name the same attribute. */
const attributes: Readonly<Record<string, string>> = Object.fromEntries(
  [
    'home: live lives living based move moved moving relocate relocated wohne wohnen ziehe umgezogen habite vivo moro woon verhuisd',
    'choice: use using go going pick picked choose chose chosen switch switched switching select selected nehmen prenons usar usamos gebruiken',
    'deadline: deadline due frist échéance plazo prazo',
    'phone: phone mobile cell telephone telefon téléphone teléfono telefone telefoon',
    'launch: launch release open opening go-live start eröffnung eröffnen lancement ouvrir ouverture apertura abrir lanzamiento abertura lançamento opening openen',
    'meeting: meeting appointment termin rendez-vous cita reunião afspraak',
  ].flatMap((line) => {
    const [name = '', list = ''] = line.split(': ')
    return list.split(' ').flatMap((word) => extractTerms(word).map((term) => [term, `=${name}`] as const))
  }),
)
const updateWords = new Set(
  extractTerms(
    'actually instead change changed mind now new update updated please correction moved set remember note want let decide decided plan final back postponed rescheduled extended meant old',
  ),
)
/** Words of other languages that say nothing about the subject; English ones are no terms. */
const functionWords = new Set(
  extractTerms(
    `ich du er sie es wir ihr mein meine meinen unser unsere der die das den dem des ein eine einen und oder ist sind war hat haben am im in an auf für von mit zu zum zur nicht auch noch schon ab bis
    je tu il elle nous vous mon ma mes notre le la les un une des du de et ou est sont ai à au en pour avec ne pas que qui sur
    yo el los las una y o es son ha he del al para con no se mi su por lo eu os as um uma é são tem em do da na com não meu minha
    ik hij mijn onze het een of zijn heeft op van met voor niet ook dat`,
  ),
)
/** Figures, and parts of elided words such as `l'ouverture`, which are also terms as a whole. */
const elided = /^\d|^\p{L}$|'/u
const comparedKinds: ReadonlySet<AnchorKind> = new Set(['date', 'number', 'identifier', 'name'])
const state =
  /\b(?:my|our|the|mein\p{L}{0,2}|unser\p{L}{0,2}|mon|ma|notre|mi|nuestr[oa]|meu|minha|mijn|onze?) [^.,;:]{2,40} (?:is|are|will be|=|ist|sind|est|sera|es|será|é|zijn) /iu

/** Values that a person has one of: a new one replaces the old one, whatever the words around it. */
const personalValues: readonly (readonly [attribute: string, pattern: RegExp])[] = [
  ['=phone', /(?<![\d.,])(?:\+|00?)[1-9]\d{0,3}[ /-]?\d[\d /-]{4,14}\d(?![.,]?\d)/g],
  ['=email', /(?<![\w.+-])[\w.+-]{1,64}@[\w-]{1,60}\.[\w.-]{2,60}/g],
  [
    '=address',
    /\b\d{1,5} (?:\p{Lu}\p{L}+ ){1,3}(?:Street|St|Road|Rd|Lane|Avenue|Ave|Drive|Way|Square|Court)\b|\p{Lu}\p{L}{2,30}(?:straße|strasse|weg|straat|platz|gasse|laan|allee|steenweg) \d{1,4}|\b(?:rue|avenue|boulevard|calle|rua|via|plaza|avenida) (?:\p{L}+ ){1,5}\d{1,4}/gu,
  ],
]

/** Days such as `27. Juni`, `12 de junio` and `3 mai`. */
const foreignDay =
  /(?<!\d)\d{1,2}(?:\.|er)? (?:de )?(?:januar|februar|märz|april|mai|juni|juli|august|oktober|dezember|janvier|février|mars|avril|juin|juillet|août|septembre|octobre|novembre|décembre|enero|febrero|marzo|abril|mayo|junio|julio|agosto|septiembre|octubre|noviembre|diciembre|janeiro|fevereiro|março|maio|junho|julho|setembro|outubro|novembro|dezembro|januari|februari|maart|mei|augustus)(?!\p{L})/giu

function parseStatement({ text }: Piece, at: number): Statement | undefined {
  const personal = personalValues.flatMap(([attribute, pattern]) =>
    Array.from(text.matchAll(pattern), ([value]) => ({ attribute, value })),
  )
  if (personal.length === 1)
    return {
      at,
      frame: new Set(personal.map(({ attribute }) => attribute)),
      values: new Map(personal.map(({ value }) => [value.toLowerCase(), 'identifier'])),
      retraction: findRetraction(text),
      isState: false,
    }
  const anchors: readonly Pick<Anchor, 'kind' | 'text'>[] = [
    ...findAnchors(text).filter(({ kind }) => comparedKinds.has(kind)),
    ...Array.from(text.matchAll(foreignDay), ([day]) => ({ kind: 'date' as const, text: day })),
  ]
  if (anchors.length === 0 || anchors.length > 6) return undefined
  const values = new Map(anchors.map((anchor) => [anchor.text.toLowerCase(), anchor.kind]))
  // In German every noun looks like a name, so names are part of the frame, too.
  const valueTerms = new Set(anchors.flatMap(({ kind, text: value }) => (kind === 'name' ? [] : extractTerms(value))))
  const frame = new Set<string>()
  for (const term of extractTerms(text)) {
    const attribute = attributes[term]
    if (attribute !== undefined) frame.add(attribute)
    else if (!valueTerms.has(term) && !updateWords.has(term) && !functionWords.has(term) && !elided.test(term))
      frame.add(term)
  }
  return { at, frame, values, retraction: findRetraction(text), isState: state.test(text) }
}

function findRelated({ frame }: Statement, byTerm: ReadonlyMap<string, readonly Statement[]>): ReadonlySet<Statement> {
  return new Set([...frame].slice(0, 40).flatMap((term) => byTerm.get(term)?.slice(-maxComparedPieces) ?? []))
}

function isReplacedBy(earlier: Statement, later: Statement, pieces: readonly Piece[]): boolean {
  const [one, other] = [pieces[earlier.at] as Piece, pieces[later.at] as Piece]
  if (!other.isPerson && one.isPerson && !findCues(other.text).includes('outcome')) return false
  if (later.retraction === undefined && !(earlier.isState && later.isState)) return false
  const shared = [...earlier.frame].filter((term) => later.frame.has(term)).length
  const smaller = Math.min(earlier.frame.size, later.frame.size)
  const isRelated =
    later.retraction !== undefined
      ? shared >= minSharedFrame * smaller && (shared > 1 || earlier.frame.size <= 3)
      : shared === earlier.frame.size && shared === later.frame.size
  return (
    isRelated && shared > 0 && hasOtherValue(earlier, later) && !hasOtherName(earlier, later) && isSameTopic(one, other)
  )
}

/** True if the later statement has a new value of a kind that the earlier one has, too. */
function hasOtherValue(earlier: Statement, later: Statement): boolean {
  for (const [value, kind] of later.values)
    if (!earlier.values.has(value))
      for (const [old, oldKind] of earlier.values) if (oldKind === kind && isNewValue(later, kind, old)) return true
  return false
}

/** True if both statements have names and none in common, and the later one does not clearly take something back. */
function hasOtherName(earlier: Statement, later: Statement): boolean {
  const [old, current] = [earlier, later].map(({ values }) =>
    [...values.keys()].filter((value) => values.get(value) === 'name'),
  )
  if (later.retraction === 'strong' || !old?.length || !current?.length) return false
  return !current.some((name) => old.includes(name))
}

/** Names change less often than figures and dates, so a name needs a clear word. */
const isNewValue = ({ retraction, values }: Statement, kind: AnchorKind, old: string): boolean =>
  retraction === 'strong' ||
  ((retraction === undefined || kind !== 'name') && (retraction === 'weak' || !values.has(old)))

/** A report of an event is not replaced by a plan and the other way round, unless one of them is a decision. */
const isSameTopic = (one: Piece, other: Piece): boolean =>
  !/\b(?:went|visited|met|bought|was born|last (?:week|month|year)|yesterday|ago)\b/i.test(one.text) ||
  findCues(other.text).includes('decision')
