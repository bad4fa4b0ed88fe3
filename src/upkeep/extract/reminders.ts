import type { Sentence } from '../../text/sentences.ts'
import type { Clause } from './clauses.ts'
import type { LanguageRules } from './languages/language.ts'
import { languages } from './languages/languages.ts'
import { foldText } from './phrases.ts'

type ReminderRules = { readonly lead: RegExp; readonly bare: RegExp }

const compiled = new Map<string, ReminderRules>()

/** Compiles the reminder patterns of a language on first use. */
function reminderRules({ code, leadIns, reminder, bareReminder }: LanguageRules): ReminderRules {
  const known = compiled.get(code)
  if (known !== undefined) return known
  const rules = {
    // A run of marks is taken whole: every other way to divide it would be tried as well.
    lead: new RegExp(
      `^(?:[\\s,:*_#•"“'-]+(?![\\s,:*_#•"“'-])|(?:${leadIns})[,:!]?\\s+(?!\\s)){0,4}(?:${reminder})[\\s,:]*`,
      'i',
    ),
    bare: new RegExp(`^(?:${bareReminder})[.!\\s]*$`, 'i'),
  }
  compiled.set(code, rules)
  return rules
}

/** Returns what a sentence asks to remember, without the request; undefined if it asks for nothing. */
export function stripReminder({ text, start, end }: Sentence, rules: LanguageRules): Sentence | undefined {
  const { lead, bare } = reminderRules(rules)
  const folded = foldText(text)
  const request = bare.test(folded.trim()) ? undefined : lead.exec(folded)?.[0]
  if (request === undefined) return undefined
  // A request such as `Can you remember that …?` is no question.
  const rest = text.slice(request.length).replace(/(?<![\s?!.])[\s?!.]+$/, '')
  return { text: rest, start: start + request.length, end: Math.min(end, start + request.length + rest.length) }
}

/** True if a clause asks to remember what was said before it. */
export const isBareReminder = ({ folded }: Clause, rules: LanguageRules): boolean =>
  reminderRules(rules).bare.test(folded)

const anyReminder = new RegExp(
  `(?:^|[\\s.,;:!?(])(?:${languages.flatMap(({ reminder, bareReminder }) => [reminder, bareReminder]).join('|')})`,
  'i',
)
/** Requests are near the start or the end of a long message. */
const maxScannedChars = 4_000

/** Tells cheaply whether a message may ask to remember something. */
export const mayRemind = (content: string): boolean =>
  anyReminder.test(foldText(content.slice(0, maxScannedChars))) ||
  (content.length > maxScannedChars && anyReminder.test(foldText(content.slice(-maxScannedChars))))
