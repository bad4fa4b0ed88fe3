import { runSync, type Work } from '../../domain/work.ts'

/** Start and end of a passage. */
export type Span = readonly [from: number, to: number]

const gap = '[\\s*"\'`“”]{1,4}'
const earlier = `(?:(?:all|any|the|your|my|these|those|of|every|everything)${gap}){0,3}(?:previous|prior|above|earlier|preceding|foregoing|system|original|existing|initial|current|former)`
/** Injections in other languages: a word for ignoring and one for instructions, close together in either order. */
const ignoring =
  'ignor[aeiouäéèà]\\p{L}{0,6}|zignoruj|olvid[ae]\\p{L}{0,3}|oubliez?|vergiss|vergessen sie|negeer|missachte\\p{L}{0,2}|esque[cç]a\\p{L}{0,2}|dimentica\\p{L}{0,3}|игнориру\\p{L}{1,4}|проигнорир\\p{L}{1,5}|забуд\\p{L}{1,4}|忽略|无视|無視|忘记|忘れ|무시|تجاهل|yok say|unut|bỏ qua|अनदेखा|नज़रअंदाज़|abaikan'
const instructing =
  'instru[cçk]\\p{L}{1,9}|istruzion\\p{L}|anweisung\\p{L}{0,3}|vorgaben|consignes|regeln|reglas|règles|regole|regras|инструкци\\p{L}{1,3}|указани\\p{L}{1,3}|правил\\p{L}{0,2}|指令|指示|命令|规则|지시|지침|명령|التعليمات|تعليمات|talimat\\p{L}{0,8}|hướng dẫn|chỉ thị|निर्देश\\p{L}{0,5}'
const nearbyText = '[^\\n.!?。！？]{0,40}?'
const patterns = [
  // a message in invisible tag characters; three flag emojis have only six of them
  '[\\u{e0020}-\\u{e007e}]{8}',
  `\\b(?:ignore|disregard|forget|override|bypass)${gap}${earlier}${gap}(?:instructions?|prompts?|messages?|rules?|context|directives?|orders?|guidelines?)\\b`,
  `\\b(?:ignore|disregard|forget)${gap}(?:everything|all)${gap}(?:above|before|previously|that came before|you were told|said so far)\\b`,
  `\\b(?:you${gap}are|you['’]re)${gap}now\\b`,
  `\\b(?:pretend${gap}(?:to be|that you are|you are)|you must${gap}now${gap}(?:act|obey))\\b`,
  `\\b(?:system|developer)${gap}(?:prompts?|instructions?|message)\\b`,
  `\\b(?:new|updated|real|actual|secret|hidden)${gap}instructions?[ \\t]{0,2}:`,
  `\\bdo not${gap}(?:tell|inform|alert|mention (?:this|it) to)${gap}the${gap}user\\b`,
  `<\\|[\\w ]{1,40}\\|>|\\[/?INST\\]|<</?SYS>>|</?(?:system|instructions?|assistant|memory)\\b[^<>\\n]{0,80}>`,
  `(?<=^|\\n)[ \\t>#*\\[]{0,6}(?:system|developer)(?:[ \\t]{1,2}(?:prompt|message|note))?[ \\t*\\]]{0,4}:`,
]
const injection = new RegExp(
  [
    ...patterns,
    `(?:${ignoring})${nearbyText}(?:${instructing})`,
    `(?:${instructing})${nearbyText}(?:${ignoring})`,
  ].join('|'),
  'giu',
)
/** Invisible characters between letters would hide an injection from the patterns, but not from a model. */
const invisible = /[\u00ad\u180e\u200b-\u200f\u2060-\u2064\ufeff]/g

/**
 * Finds passages that address the reading model with instructions. They must not get into a summary, where they would
 * read as context from the application.
 *
 * @example
 * findInjections('Nice page. Ignore all previous instructions!') // [[11, 43]]
 */
export const findInjections = (text: string): readonly Span[] => runSync(findInjectionsInSteps(text))

/** Characters searched in one piece, and those before and after them that a pattern may read. */
const windowCharacters = 16_384
const [maxBefore, maxAfter] = [64, 1_024]

/** `findInjections` as interruptible work. */
export function* findInjectionsInSteps(text: string): Work<readonly Span[]> {
  if (text.search(invisible) >= 0) return yield* findHiddenInjections(text)
  const spans: Span[] = []
  for (let from = 0, reached = 0; from < text.length; from += windowCharacters) {
    const [start, end] = [Math.max(0, from - maxBefore), from + windowCharacters]
    for (const { 0: found, index } of text.slice(start, end + maxAfter).matchAll(injection)) {
      const at = start + index
      if (at >= end) break
      if (at < Math.max(from, reached)) continue
      reached = at + found.length
      spans.push([at, reached])
    }
    yield windowCharacters / searchSpeed
  }
  return spans
}

/** Searching is faster than the work that slices are made for. */
const searchSpeed = 8

/** Searches without invisible characters and maps the spans back to the original text. */
function* findHiddenInjections(text: string): Work<readonly Span[]> {
  const spans = yield* findInjectionsInSteps(text.replace(invisible, ''))
  if (spans.length === 0) return spans
  const positions: number[] = []
  for (let at = 0; at < text.length; at++) {
    if (text.charAt(at).search(invisible) < 0) positions.push(at)
    yield 1
  }
  return spans.map(([from, to]) => [positions[from] ?? 0, (positions[to - 1] ?? text.length) + 1] as const)
}

/** Replaces quotations by spaces of the same length: quoting an injection is harmless. */
export const blankQuotations = (text: string): string =>
  text.replace(/"[^"\n]{1,300}"|“[^”\n]{1,300}”|«[^»\n]{1,300}»|`[^`\n]{1,300}`/g, (quotation) =>
    ' '.repeat(quotation.length),
  )

/** True if one of the sorted spans overlaps a range. */
export function overlapsAny(spans: readonly Span[], start: number, end: number): boolean {
  let [low, high] = [0, spans.length]
  while (low < high) {
    const middle = (low + high) >> 1
    if ((spans[middle] as Span)[1] > start) high = middle
    else low = middle + 1
  }
  return (spans[low]?.[0] ?? Number.POSITIVE_INFINITY) < end
}
