import type { Work } from '../../domain/work.ts'
import { splitFencedLines } from '../../text/fences.ts'
import { type Sentence, splitSentences } from '../../text/sentences.ts'
import { languages } from './languages/languages.ts'
import { foldText } from './phrases.ts'

/** A line of a message; `isOwn` is false for text that the user quotes or has pasted. Quotations in it are blanked. */
export type UserLine = { readonly text: string; readonly start: number; readonly isOwn: boolean }

/** Work per line beside its characters: dozens of patterns are tried on it. */
const lineChars = 40

/** Splits a message into lines and marks those in the user's own words. Positions are those of the message. */
export function* userLines(content: string): Work<readonly UserLine[]> {
  const text = blankQuotations(blankBlocks(blankTagged(content)))
  const fenced = splitFencedLines(text)
  const separated = separatedLines(text, fenced)
  const lines: UserLine[] = []
  let isQuotedRest = false
  let isOutput = false
  for (const [index, { start, end, fence }] of fenced.entries()) {
    const line = text.slice(start, end)
    const isOutside = fence === 'none' && !separated.has(index)
    const quoted: QuotedPart | undefined =
      isOutside && !isQuotedRest ? findQuotedPart(line, lines.at(-1)?.text ?? '') : undefined
    const own = quoted === undefined ? line : blank(line, quoted.from)
    // Output follows a shell prompt up to an empty line.
    isOutput = line.trim() !== '' && (isOutput || shellPrompt.test(line))
    lines.push({ text: own, start, isOwn: !isQuotedRest && !isOutput && isOutside && !isPasted(line) })
    isQuotedRest ||= quoted?.isRest === true
    yield lineChars + line.length
  }
  return lines
}

/** Longer sentences are not prose but data. */
const maxSentenceChars = 2_000
/** Sentences beyond this number of one message are most likely pasted. */
const maxSentences = 2_000

/** Lists the sentences of the user's own lines with their positions in the message. */
export function* userSentences(lines: readonly UserLine[]): Work<readonly Sentence[]> {
  const sentences: Sentence[] = []
  for (const { text: line, start: offset, isOwn } of lines) {
    if (sentences.length >= maxSentences) break
    if (!isOwn) continue
    for (const { text, start, end } of splitSentences(line))
      if (text.length <= maxSentenceChars) sentences.push({ text, start: start + offset, end: end + offset })
    yield lineChars + line.length
  }
  return sentences.slice(0, maxSentences)
}

/** Replaces a text from a position on, except line breaks. */
const blank = (text: string, from = 0): string => {
  const lines = text.slice(from).split('\n')
  return text.slice(0, from) + lines.map(({ length }) => ' '.repeat(length)).join('\n')
}

/** Stands for the characters of a quotation: no letter, no white space, no end of a sentence. */
const quotedMark = '\ufffc'

const block = /("""|''')[\s\S]*?(?:\1|$)|<<<[\s\S]*?(?:>>>|$)/g
const blankBlocks = (text: string): string =>
  /"""|'''|<<</.test(text) ? text.replace(block, (whole) => blank(whole)) : text

const separator = /^\s{0,3}(?:[-=*_~—]{3,200}|[-=*]{3,40}[^-=*\n]{1,60}[-=*]{3,40})\s*$/
/** End of a line that announces pasted text. */
const announcesPaste =
  /:\s*$|\b(?:below|following|unten|folgende[nrs]?|ci-dessous|suivante?|siguiente|abajo|seguinte|abaixo|hieronder|volgende)\b/i

/** Finds the lines between two separators such as `---`, or after a single one that is announced. */
function separatedLines(text: string, lines: ReturnType<typeof splitFencedLines>): ReadonlySet<number> {
  const lineAt = (index: number): string => text.slice(lines[index]?.start, lines[index]?.end)
  const separators = [...lines.keys()].filter(
    (index) => lines[index]?.fence === 'none' && separator.test(lineAt(index)),
  )
  const [first, last] = [separators[0], separators.at(-1)]
  if (first === undefined || last === undefined) return new Set()
  let before = first - 1
  while (before > 0 && lineAt(before).trim() === '') before--
  const end = last > first ? last : before >= 0 && announcesPaste.test(lineAt(before)) ? lines.length : first
  return new Set(Array.from({ length: end - first }, (_, index) => first + index))
}

/** Quotations in one or several lines. A quotation mark after a digit means inches. */
const quotation =
  /(?<![\p{L}\p{N}])"(?=\S)[^"]{2,4000}?(?<=\S)"(?![\p{L}\p{N}])|[“„][^“”„]{2,4000}[”“]|«[^«»]{2,4000}»|‘[^‘\n]{2,400}?’(?!\p{L})|(?<![\p{L}\p{N}'])'(?=[\p{L}"])(?:[^'\n]|(?<=\p{L})'(?=\p{L})){6,400}'(?!\p{L})|(?<![\p{L}\p{N}])"(?=\p{Lu})[^"\n]{2,2000}$/gmu
const firstPerson =
  /\b(?:i|i'm|my|me|we|our|ich|mein|meine|wir|je|j|mon|ma|nous|yo|mi|soy|vivo|tengo|eu|meu|minha|sou|moro|ik|mijn|wij)\b/i
const maxNameWords = 3

/** Blanks quotations that are somebody's words rather than a name or a title. */
function blankQuotations(text: string): string {
  if (!/["“„«‘']/.test(text)) return text
  return text.replace(quotation, (whole, at: number) => {
    const inner = whole.slice(1, -1)
    const isName =
      inner.split(/\s+/).length <= maxNameWords && !/[.!?]$/.test(inner) && !firstPerson.test(foldText(inner))
    if (isName || isDictated(text, at)) return whole
    return whole.replace(/[^\n"“”„«».!?]|[.!?](?=.)/g, (character) => (character === '\n' ? '\n' : quotedMark))
  })
}

const dictation = languages.map(({ reminder }) => new RegExp(`(?:^|[.!?;,]\\s)(?:${reminder})\\s?$`, 'i'))

/** True if the text before a position asks to remember the quotation that follows. */
function isDictated(text: string, at: number): boolean {
  const before = foldText(text.slice(Math.max(0, text.lastIndexOf('\n', at - 1) + 1, at - 80), at))
  return dictation.some((pattern) => pattern.test(before))
}

const tag = /<memory\b|^[ \t]{0,40}<([a-z][\w-]{0,30})(?=[\s/>])[^>\n]{0,300}>/gim
const closingTag = /<\/([a-z][\w-]{0,30})\s{0,9}>/gi

/**
 * Blanks recalled memory and the content of tags that start a line, such as pages, documents and reminders. Unclosed
 * memory extends to the end: missing user text is better than trusting recalled text.
 */
function blankTagged(content: string): string {
  if (!content.includes('<')) return content
  const closings = indexClosingTags(content)
  let result = ''
  let copiedTo = 0
  tag.lastIndex = 0
  for (let match = tag.exec(content); match !== null; match = tag.exec(content)) {
    const after = match.index + match[0].length
    const closing = nextClosing(closings.get(match[1]?.toLowerCase() ?? 'memory'), after)
    const end = closing ?? (match[1] === undefined ? content.length : after)
    result += `${content.slice(copiedTo, match.index)}\n${' '.repeat(end - match.index - 2)}\n`
    copiedTo = end
    tag.lastIndex = end
  }
  return result + content.slice(copiedTo)
}

type ClosingTags = { readonly ends: number[]; next: number }

/** Indexes the ends of closing tags by name once, so that many opening tags stay linear. */
function indexClosingTags(content: string): ReadonlyMap<string, ClosingTags> {
  const closings = new Map<string, ClosingTags>()
  for (const { 0: closing, 1: name = '', index } of content.matchAll(closingTag)) {
    const known = closings.get(name.toLowerCase()) ?? { ends: [], next: 0 }
    known.ends.push(index + closing.length)
    closings.set(name.toLowerCase(), known)
  }
  return closings
}

function nextClosing(closings: ClosingTags | undefined, after: number): number | undefined {
  if (closings === undefined) return undefined
  while ((closings.ends[closings.next] ?? Number.POSITIVE_INFINITY) <= after) closings.next++
  return closings.ends[closings.next]
}

/** Headings of rendered memory and of forwarded messages: no text after them is the user's own. */
const quotesTheRest =
  /^\s{0,9}(?:#{1,3} (?:Background Context \(INTERNAL|Conversation Context$|Recalled from earlier)|\[(?:RECALLED FROM EARLIER|SYSTEM MESSAGE|IMPORTANT DATA|CONVERSATION SUMMARY|RECENT MESSAGES)|-{2,} ?(?:original|forwarded|ursprungliche|weitergeleitete|message|mensaje|mensagem|doorgestuurd)|begin forwarded message|fwd?: )/i
const header =
  /^\s{0,3}(?:from|to|cc|sent|date|subject|von|an|gesendet|datum|betreff|de|a|envoye|objet|para|enviado|asunto|assunto|van|aan|onderwerp)\s?: \S/i
const subjectHeader = /^\s{0,3}(?:subject|betreff|objet|asunto|assunto|onderwerp|re|aw|tr|rv)\s?: \S/i

const speechVerbs =
  'wrote|writes|said|says|saying|replied|answered|told (?:me|us|him|her|them|everyone)|reads|states|announced|schrieb|schreibt|sagte|sagt|meinte|antwortete|erzahlte(?: mir| uns)?|ecrit|dit|repondu|declare|dijo|dice|escribio|escribe|respondio|disse|diz|escreveu|escreve|respondeu|zei|zegt|schreef|schrijft|antwoordde'
const ownSpeech =
  /^\W{0,4}(?:(?:as|like) )?(?:i|we|ich|wir|je|j'ai|nous|yo|eu|ik|wij) ?(?:'ve |have |already |just )*(?:said|told|wrote|say|sagte|schrieb|dit|disse|dije|zei)/i
/** Work on a text: the text follows the colon. */
const editVerbs =
  'translate|rewrite|re-write|rephrase|reword|paraphrase|proofread|summari[sz]e|transcribe|copy-?edit|ubersetz(?:e|en)?|formulier(?:e|en)?|umschreib(?:e|en)?|korrigier(?:e|en)?|fasse?|traduis|traduire|traduisez|reformule[zr]?|corrige[zr]?|resume[zrn]?|traduce|traduzca|traducir|reescribe|resumir|traduza|traduz|traduzir|reescreva|corrija|resuma|vertaal|herschrijf|verbeter|vat'
const workVerbs =
  'correct|check|fix|edit|improve|review|analy[sz]e|explain|answer|reply to|respond to|read|polish|shorten|expand|format|convert|classify|label|parse|extract|grade|debug|comment on|write|draft|prufe|verbessere|schreib(?:e)?|lies|analysiere|ecris|redige|analyse|verifie|escribe|analiza|revisa|escreva|analise|reveja|schrijf|controleer|analyseer|lees'
const textNouns =
  'text|e-?mail|mail|message|letter|draft|article|paragraph|bio|biography|post|tweet|transcript|log|logs|review|excerpt|passage|story|essay|abstract|quote|quotation|output|response|code|snippet|resume|cv|cover letter|description|chapter|poem|lyrics|dialogue?|conversation|chat|sentence|sentences|page|document|documentation|docs|readme|note from|memo|report|speech|statement|prompt|template|example|brief|nachricht|brief|artikel|absatz|satz|beispiel|seite|lettre|courriel|phrase|texte|paragraphe|exemple|carta|correo|mensaje|texto|parrafo|articulo|frase|ejemplo|pagina|mensagem|paragrafo|artigo|exemplo|bericht|tekst|alinea|zin|voorbeeld'
const examples =
  'for example|for instance|example|zum beispiel|beispiel|par exemple|exemple|por ejemplo|ejemplo|por exemplo|exemplo|bijvoorbeeld|voorbeeld|something like|a sentence like'

const restCues: readonly RegExp[] = [
  new RegExp(`\\b(?:${editVerbs})\\b[^:\\n]{0,80}:`, 'i'),
  new RegExp(
    `^[^:\\n]{0,40}\\b(?:${workVerbs})\\b[^:\\n]{0,60}\\b(?:this|these|the following|my|the|it|a|an|diese[nrs]?|folgende[nrs]?|den|die|das|ce|cette|ces|le|la|este|esta|el|o|a|deze|dit|de|het)\\b[^:\\n]{0,60}\\b(?:${textNouns})\\b[^:\\n]{0,40}:`,
    'i',
  ),
  /^[^:\n]{0,40}\b(?:correct|check|fix|edit|improve|review|polish|analy[sz]e|explain|reply to|respond to) (?:this|these|the following|it)\b[^:\n]{0,40}:/i,
  new RegExp(
    `^[^:\\n]{0,30}\\b(?:here(?:'s| is| are|'re)|below is|this is|this was|see|from|got|received|found|hier ist|hier sind|voici|voila|aqui (?:esta|tienes?)|eis|segue|hier is|dit is|das ist|c'est)\\b[^:\\n]{0,50}\\b(?:${textNouns})\\b[^:\\n]{0,50}:`,
    'i',
  ),
  new RegExp(`\\b(?:${speechVerbs})(?: [\\p{L}. ]{1,30})? ?:\\s{0,9}$`, 'iu'),
]
const lineCues: readonly RegExp[] = [
  new RegExp(`\\b(?:${speechVerbs})(?: (?:me|us|mir|uns|that))? ?:`, 'i'),
  new RegExp(`\\b(?:(?:${examples}) ?[:,]|(?:e\\.g\\.|eg|z\\. ?b\\.|p\\. ?ex\\.|p\\. ?ej\\.|bijv\\.)[:,]?\\s)`, 'i'),
  /\b(?:the|a|this|that|der|die|das|le|la|l'|un|el|o|de|het) ?(?:[\w-]{1,20} ){0,3}(?:page|article|website|site|book|sign|label|e-?mail|letter|message|docs?|documentation|readme|text|post|review|poster|seite|artikel|buch|page|livre|pagina|libro|livro|boek) (?:says|said|states|reads|claims|mentions|sagt|dit|dice|diz|zegt)\b/i,
]

type QuotedPart = { readonly from: number; readonly isRest: boolean }

/** Finds text in a line that is not the user's: up to the end of the line, or of the message (`isRest`). */
function findQuotedPart(line: string, before: string): QuotedPart | undefined {
  const folded = foldText(line)
  if (quotesTheRest.test(folded)) return { from: 0, isRest: true }
  if (subjectHeader.test(folded) || (header.test(folded) && header.test(foldText(before))))
    return { from: 0, isRest: true }
  if (folded.length > maxSentenceChars) return undefined
  for (const [cues, isRest] of [
    [restCues, true],
    [lineCues, false],
  ] as const)
    for (const cue of cues) {
      if (isRest && !folded.includes(':')) break
      const match = cue.exec(folded)
      if (match !== null && !(cue.source.includes('wrote') && ownSpeech.test(folded)))
        return { from: match.index + match[0].length, isRest }
    }
  return undefined
}

const shellPrompt = /^\s{0,9}(?:[❯➜]|\$ |\w+@[\w.-]+[:~ ][^$#\n]{0,60}[$#] |PS [A-Z]:\\|>>> )/

const pastedPatterns: readonly RegExp[] = [
  // quotations, table rows, shell prompts, markup
  /^\s{0,40}(?:[>|❯]|\$ |<[!/a-z])/i,
  // JSON
  /^\s*(?:[{}[\]]{1,4},?\s*$|[{[]\s*["{[]|["'][\w .-]{1,60}["']\s{0,9}:)/,
  // logs and stack traces
  /^\s*\[?(?:\d{4}-\d\d-\d\d[T ]\d\d:\d\d|\d\d:\d\d:\d\d|(?:TRACE|DEBUG|INFO|WARN|WARNING|ERROR|FATAL)\b\]?[\s:])/,
  /^\s*(?:at \S.{0,200}[:(]\d|File ".{1,200}", line \d|Traceback )/,
  // code without a fence
  /[;{}]\s*$/,
  /^\s*(?:(?:const|let|var)\s[^=\n]{1,80}=|(?:import|from)\s.{1,200}\b(?:from|import)\s|(?:async )?(?:def|function|class|fn|func)\s\w{1,60}\s?[({:<]|[\w.[\]'"]{1,60} [+-]?= \S|@\w{1,60}\()/,
  /^\s*(?:SELECT|INSERT INTO|CREATE TABLE|DELETE FROM)\s/,
  // a transcript
  /^\s*\W{0,2}(?:assistant|ai|bot|system|tool|human|user|chatgpt|claude|gemini|copilot)\W{0,2}:/i,
]
const speakerPattern =
  /^\s*\W{0,2}(\p{Lu}[\p{L}-]{1,20})(?: \p{Lu}[\p{L}-]{1,20})?\W{0,2}: (?:["“\ufffc]|(?:I|[Mm]y|[Ww]e|[Oo]ur|[Ii]ch|[Mm]eine?|[Ww]ir|[Jj]e|[Jj]'|[Mm]on|[Mm]a|[Nn]ous|[Yy]o|[Mm]i|[Vv]ivo|[Ss]oy|[Tt]engo|[Ee]u|[Mm]eu|[Mm]inha|[Mm]oro|[Ss]ou|[Ii]k|[Mm]ijn|[Ww]ij)\b)/u
const ownLabels =
  /^(?:also|background|context|correction|edit|fyi|goal|important|info|me|myself|note|preferences?|ps|remember|reminder|update|wichtig|hinweis|korrektur|notiz|important|importante|nota|belangrijk|correcci[oó]n|corre[cç][aã]o|correctie|recuerda|lembre|onthoud|retiens|nb)$/i

/** True if a line is not the user's prose. `Ana: I live in Oslo` is a statement by Ana. */
function isPasted(line: string): boolean {
  if (pastedPatterns.some((pattern) => pattern.test(line))) return true
  const name = speakerPattern.exec(line)?.[1]
  return name !== undefined && !ownLabels.test(name)
}
