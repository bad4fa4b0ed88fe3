import type { Work } from '../../domain/work.ts'
import { splitSentences } from '../../text/sentences.ts'
import { findLargestInSteps } from './select.ts'
import { fitsTarget, type SummaryTarget } from './summary.ts'

const summaryWord =
  '(?:summar(?:y|ies|ized|ised)|recap|overview|zusammenfassung|résumé|resumen|resumo|samenvatting|riassunto)'
/** Heading of a summary: "**Updated summary of the conversation**". */
const label = `(?:#{1,6} |\\*\\*|__)?(?:(?:the|a|an|brief|short|concise|narrative|updated|conversation|chat|session|support|kurze|aktualisierte|breve|bref|korte) ){0,4}${summaryWord}(?: (?:of|der|des|de|du|da|van|del) (?:the |our |this |la |het |los )?(?:\\p{L}{1,20} ?){1,2})?`
/** Openings of a reply to the request, not of the summary. */
const preambles = [
  /^(?:sure(?: thing)?|certainly|of course|okay|ok|absolutely|got it|understood|gerne|natürlich|klar|bien sûr|voilà|claro(?: que sí)?|por supuesto|com certeza|zeker|natuurlijk)[!.,:]\s*(?=\S)/iu,
  /^(?:here(?:['’]s| is| are)|below is|this is|the following is|hier (?:ist|folgt|kommt|is)|voici|aquí (?:está|tienes?)|aqui está|i['’]ve|i have)[^\n:]{0,160}:\s*/iu,
  new RegExp(`^${label}(?:\\s{0,3}\\([^)\\n]{0,40}\\))?(?:\\*\\*:?|__:?|:\\**|(?=\\n))\\s*`, 'iu'),
  /^(?:-{3,}|\*{3,}|_{3,})\s*\n\s*/,
]
/** Closing sentences that address the person who asked. */
const closing =
  /^\W{0,4}(?:let me know|feel free|i hope|hope (?:this|that)|would you like|if you(?:['’]d| need| want| have| would)|is there anything|please (?:let me|feel free|note that this summary)|do you want|anything else|this summary|word count|total words|\d{1,4} words|(?:approximately |about )?\d{1,4} words|sag(?:en)? (?:mir|sie)|lass(?:en)? (?:mich|es|sie)|gib (?:mir )?bescheid|n['’]hésite|faites-moi|dis-moi|avísame|si necesitas|se precisar|avise-me|laat (?:me|het))/iu
const maxClosings = 3

/**
 * Removes everything from a model's reply that is not the summary: reasoning, fences, quotes, preambles, closing offers
 * and Markdown marks. Bullets stay as lines.
 *
 * @example
 * cleanModelText('Sure! Here is the summary:\n\n**Order** BK-1 is late.\n\nLet me know if you need more.') // 'Order BK-1 is late.'
 */
export function cleanModelText(reply: string): string {
  let text = unwrap(reply.replace(/^\s*<think(?:ing)?>[\s\S]*?<\/think(?:ing)?>/i, '').trim())
  for (const pattern of [...preambles, ...preambles]) text = text.replace(pattern, '')
  text = unwrap(dropClosings(text.trim()))
  return text
    .replace(/^[ \t]{0,8}#{1,6} +/gm, '')
    .replace(/\*\*([^*\n]{1,300})\*\*/g, '$1')
    .replace(/^([ \t]{0,8})[*•–] +/gm, '$1- ')
    .replace(/^(?:-{3,}|\*{3,}|_{3,})[ \t]*$/gm, '')
    .replace(/\n{2,}/g, '\n')
    .trim()
}

/** Removes a fence or quotes around the whole text. */
function unwrap(text: string): string {
  const [, inside] = /^(?:```|~~~)[a-z]{0,12}\n([\s\S]*?)\n?(?:```|~~~)$/i.exec(text) ?? []
  const [, quoted] = /^(?:"([^"]*)"|“([^”]*)”|«([^»]*)»)$/.exec(text)?.filter((part) => part !== undefined) ?? []
  return (inside ?? quoted ?? text).trim()
}

function dropClosings(text: string): string {
  let result = text
  for (let count = 0; count < maxClosings; count++) {
    const last = splitSentences(result).at(-1)
    if (last === undefined || last.start === 0 || !closing.test(last.text)) break
    result = result.slice(0, last.start).replace(/(?<![\s(*_-])[\s(*_-]+$/, '')
  }
  return result
}

/** Removes an unfinished sentence at the end of prose; a list item or a heading needs no stop. */
export function dropUnfinished(text: string): string {
  const sentences = splitSentences(text)
  const last = sentences.at(-1)
  const stopped = sentences.slice(0, -1).filter((sentence) => isFinished(sentence.text)).length
  if (last === undefined || isFinished(last.text) || stopped * 2 < sentences.length) return text
  return text.slice(0, last.start).trimEnd()
}

const isFinished = (sentence: string): boolean => /[.!?…。！？:][)\]"'”’»*_`]{0,3}$/.test(sentence)

/** Shares of a text that trimming leaves at least; a longer text is written for another target. */
const minTrimmedShare = 0.55

/** Removes the sentences with the lowest weight until a text fits the target; undefined if too little would remain. */
export function* trimToTarget(
  text: string,
  target: SummaryTarget,
  weigh: (sentence: string) => number,
): Work<string | undefined> {
  if (fitsTarget(text, target)) return text
  const sentences = splitSentences(text)
  const weights: number[] = []
  for (const sentence of sentences) {
    weights.push(weigh(sentence.text) / sentence.text.length)
    yield sentence.text.length
  }
  const byWeight = [...sentences.keys()].sort(
    (left, right) => (weights[right] ?? 0) - (weights[left] ?? 0) || left - right,
  )
  /** Joins the sentences with the highest weights. */
  const join = (count: number): string => {
    const kept = new Set(byWeight.slice(0, count))
    let result = ''
    let end = 0
    for (const [index, sentence] of sentences.entries()) {
      if (kept.has(index))
        result += (result === '' ? '' : text.slice(end, sentence.start).includes('\n') ? '\n' : ' ') + sentence.text
      end = sentence.end
    }
    return result
  }
  const fits = function* (count: number): Work<boolean> {
    yield text.length
    return fitsTarget(join(count), target)
  }
  const trimmed = join(yield* findLargestInSteps(sentences.length, fits))
  return trimmed.length < minTrimmedShare * text.length ? undefined : trimmed
}
