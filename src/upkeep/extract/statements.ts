import type { TextFact } from './fields.ts'
import { type Clause, contentWords, keyFromText, trimPhrase, truncateValue } from './userText.ts'

const pattern = (source: string): RegExp => new RegExp(`^${source}`, 'i')

const prohibition = pattern(
  "((?:(?:we|you|i|it|this|the \\w+) (?:must|should|shall|can|may) (?:never|not)|(?:we|you) (?:mustn't|shouldn't)|we (?:can't|cannot)|never|don't(?: ever)?|do not(?: ever)?|must not|avoid|refrain from) (.+))$",
)
/** Starts of clauses that only sound like a rule: small talk, or a report without a subject. */
const smallTalk =
  /^(?:worry|mind|know|think|thought|knew|forget|hesitate|get me|get it|you|want|have|had|has|see|seen|heard|hear|understand|remember|need|be|quit|miss|stress|panic|apologi[sz]e|settle|underestimate|saw|came|went|made|took|gave|found|told|said|sweat|bother|hold|give up|let|ask|tell|been|again|too|really|ever|stop|a|an|the|in|before|got|felt|did|liked?|lose|miss out|even|gets?|fails?|is|was|wait|feel|care|believe|expect|blame|say|help)\b|^\w{2,20}ed\b/i
/** Requires a verb of action: `always calm` and `always good to hear` are not rules. */
const demand = pattern(
  '((?:(?:we|you) (?:must|should) )?always ((?:use|include|write|add|run|answer|reply|respond|ask|check|test|cite|explain|give|show|keep|make|start|end|provide|put|format|return|follow|mention|confirm|verify|validate|commit|document|name|sort|wrap|handle|log|prioriti[sz]e|avoid|consider|suggest|list|call|address|set|send|tell|treat|specify|state|highlight|offer|focus|ensure|round|convert|translate|link|quote|note|remind|recommend|default|prefer|review|back up|store|close|encrypt|escape)\\b.+))$',
)

/**
 * Finds rules such as `never deploy on Fridays` and `always run the tests`. Each subject gets its own `constraints.`
 * key, so that `always …` replaces `never …` and rules do not displace one another.
 */
export function findConstraint({ text, start, end }: Clause): TextFact | undefined {
  const [, statement = '', subject = ''] = prohibition.exec(text) ?? demand.exec(text) ?? []
  if (subject === '' || smallTalk.test(subject)) return undefined
  const key = constraintKeyFor(subject)
  return key === undefined
    ? undefined
    : { field: 'custom_fields', key, value: truncateValue(trimPhrase(statement)), importance: 9, from: start, to: end }
}

/** Key prefix of constraints in `custom_fields`. */
export const constraintsKey = 'constraints'

/** Derives the key of the constraint on a subject. */
export function constraintKeyFor(subject: string): string | undefined {
  const name = keyFromText(
    subject.replace(/\b(?:never|always|don't|do not|must not|must|avoid|use|using|ever)\b/gi, ' '),
    4,
  )
  return name === '' ? undefined : `${constraintsKey}.${name}`
}

const decisionPatterns: readonly RegExp[] = [
  pattern(
    "let's (?:just |all |both |definitely |instead |then )*(?:go (?:with|for)|use|stick (?:with|to)|choose|pick|adopt|switch (?:to|over)|move to|settle (?:on|for)|drop|skip|rename|name it|call it|target|build|host|deploy|store|make it) .+$",
  ),
  pattern(
    "(?:we|i)(?:'ve| have|'d| had)? (?:finally |now |both |all |already |just |also |then )*(?:decided|agreed|chose|chosen|selected|settled on|opted|committed to|finali[sz]ed|approved|switched (?:to|from|over)|picked(?! up\\b)|went with) .+$",
  ),
  pattern(
    "(?:we|i)(?:'ll| will|'re going to|'m going to| are going to| am going to) (?:just |definitely |then )*(?:use|go with|go for|stick (?:with|to)|switch to|adopt|choose|settle on) .+$",
  ),
  pattern(
    "(?:we|i)(?:'re| are|'m| am) (?:going with|sticking (?:with|to)|switching (?:to|over to)|moving (?:to|over to)) .+$",
  ),
  pattern('(?:the |our |my )?(?:final )?(?:decision|plan|choice)(?: is|:)(?: to| that)? .+$'),
]
/** Decisions on a pronoun have no meaning without the context. */
const vagueDecision = /\b(?:it|that|this|them|those|these|you|something|one|happen)$|\b(?:for it|this \w+)\b/i

/** Finds a decision and returns it in its own words. */
export function findDecision({ text, start, end }: Clause): TextFact | undefined {
  const statement = trimPhrase(text)
  if (!decisionPatterns.some((decision) => decision.test(text)) || vagueDecision.test(statement)) return undefined
  return { field: 'key_decisions', key: '', value: truncateValue(statement), importance: 8, from: start, to: end }
}

const markedFactPatterns: readonly RegExp[] = [
  pattern(
    '(?:the|our|my|one) (?:key|main|most important|critical|crucial|central|primary|principal|important|biggest) (?:findings?|results?|points?|takeaways?|conclusions?|insights?|facts?|requirements?|lessons?)(?: here)? (?:is|are|was|were)(?: that)?:? (.+)$',
  ),
  pattern('(?:very |super |really )?important(?: note| fact| detail)?: ?(.+)$'),
  pattern('(?:key (?:fact|finding|point|result)|nb|reminder|for reference|note to self|fact): ?(.+)$'),
  pattern(
    "(?:just )?(?:note|remember|keep in mind|bear in mind|be aware|don't forget|do not forget|make a note)(?: that|:) ?(.+)$",
  ),
  pattern("(?:remember|don't forget|do not forget) ((?:my|our|i|i'm|we) .+)$"),
  pattern(
    "it(?:'s| is) (?:very |really |absolutely )?(?:important|critical|crucial|essential|vital) (?:to know |to note )?that ((?:i|i'm|we|my|our|the|you) .+)$",
  ),
]

const month =
  '(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)'
const datePattern = new RegExp(
  `\\b(?:${month}\\.? \\d{1,4}(?:st|nd|rd|th)?|\\d{1,2}(?:st|nd|rd|th)?(?: of)? ${month}|(?:in|since|by|until|from|of) ${month}|\\d{4}-\\d\\d-\\d\\d|\\d{1,2}[/.]\\d{1,2}[/.]\\d{2,4})\\b`,
  'i',
)
const weekdayPattern = /\b(?:mon|tues|wednes|thurs|fri|satur|sun)day\b/i
const amountPattern =
  /(?:[$€£¥]\s?\d|\d[\d.,]*\s?(?:%|k\b|eur|usd|gbp|euros?|dollars?|pounds|hours?|days?|weeks?|months?|years?|people|users?|words?|pages?|kg|km|miles|gb|mb|ms)\b|\b\d{2,})/i

const attributes =
  'name|birthday|age|e-?mail(?: address)?|phone(?: number)?|address|job(?: title)?|role|title|profession|hometown|city|country|nationality|salary|income|budget|rent|deadline|due date|goal|aim|target|major|degree|school|university|company|employer|team|manager|boss|coach|mentor|tutor|therapist|doctor|wife|husband|spouse|partner|girlfriend|boyfriend|fianc[eé]e?|mother|mom|mum|father|dad|parents|sister|brother|son|daughter|kids?|child|children|aunt|uncle|cousin|grand(?:ma|pa|mother|father|son|daughter)|friend|roommate|neighbou?r|colleague|co-?worker|dog|cat|pet|puppy|kitten|horse|car|bike|hobby|hobbies|passion|dream|stack|tech stack|database|server|port|username|user id|blood type|height|weight|size|appointment|meeting|interview|exam|flight|trip|wedding|anniversary|graduation|surgery|launch(?: date)?|release(?: date)?|exhibition|performance|competition|tournament|conference|presentation|demo|limit|quota|version|repo(?:sitory)?|branch|domain|thesis|dissertation|project|app|product|website|book|novel|course'
const ownedAttribute = new RegExp(
  `^(?:(?:my|our) (?:[\\w'’-]+ ){0,3}?|the (?:[\\w-]+ ){0,2}?)(${attributes})s?(?:'s|,? [\\p{Lu}][\\p{L}'’-]+,?)? (?:is|are|was|were|will be|falls|starts|begins|ends|has|turns|works|lives|moved|got|named|called)\\b ?(.*)$`,
  'iu',
)
/** Temporary states, which are outdated with the next message. */
const transientState =
  /^(?:not |n't|now |still |also |so |very |really |too |pretty |quite |just |currently )*(?:working|failing|broken|running|slow|getting|going|giving|throwing|returning|showing|causing|taking|having|being|doing|trying|great|good|bad|fine|ok|okay|nice|awesome|amazing|cool|wrong|right|clear|done|ready|empty|missing|null|undefined|here|there|below|above|as follows|similar|different|important|hard|tough|easy|difficult|possible|that|how|what|why|when|where|whether|if|not)\b/i
const things =
  "(?:dogs?|cats?|pets?|puppy|puppies|kittens?|horses?|sons?|daughters?|kids?|child|children|brothers?|sisters?|siblings?|twins|wife|husband|partner|girlfriend|boyfriend|fianc[eé]e?|degree|phd|master'?s|bachelor'?s|diploma|job|company|business|startup|house|apartment|car|allergy|allergies|asthma|diabetes|adhd|dyslexia|interview|appointment|exam|meeting|deadline|flight|wedding|performance|competition|budget|team of)"

const personalFactPatterns: readonly RegExp[] = [
  pattern(
    '(?:i|we) (?:currently |now |still |both |used to |also )*(?:live|work|study|teach|volunteer|reside) (?:in|at|for|as|on|with|near|from) (.+)$',
  ),
  pattern(
    "(?:i'm|i am|we're|we are) (?:originally |currently |now |actually )*(?:from|based in|located in|living in|working (?:at|for|as)|studying|allergic to|married|engaged|divorced|pregnant|retired|diagnosed|\\d{1,3}(?: years old)?(?=$|,| and)) ?(.*)$",
  ),
  pattern(
    "(?:i'm|i am) (?:also |actually |currently |now )*an? (?!bit\\b|little\\b|lot\\b|few\\b|couple\\b|big fan|huge fan|fan\\b|total\\b|complete\\b|mess\\b|kind\\b|mix\\b|bundle\\b|step\\b|true\\b|firm\\b|tad\\b|better\\b|new user)(.+)$",
  ),
  pattern(
    'i (?:just |recently |finally |also )*(?:was born|grew up|moved (?:to|from|here|out)|graduated|majored|got (?:married|engaged|divorced|promoted|hired|a (?:new )?(?:job|dog|cat|puppy|kitten|promotion|tattoo))|lost my|quit my|started (?:a|my|working|learning)|joined|adopted|signed up|enrolled|speak(?! (?:to|with|up))|own|drive (?:a|an)|was diagnosed|retired|served|founded|co-founded|opened (?:a|my)) ?(.*)$',
  ),
  pattern(
    `(?:i|we)(?:'ve| have) (?:got )?(?:a |an |one |two |three |four |five |\\d+ )(?:[\\w-]+ ){0,2}?${things}\\b ?(.*)$`,
  ),
  pattern(
    "(?:i|we)(?:'ve| have) been (?:\\w+ing|married|together|friends|a|an|in|at|with) .*\\b(?:for|since) (?:(?:over|about|almost|nearly|around|more than|at least) )*(?:\\d|a (?:year|month|week|decade|few|couple)|the (?:past|last)|(?:two|three|four|five|six|seven|eight|nine|ten|many|several|some) (?:year|month|week|day|decade)|i\\b|my|last|childhood|college|high school)(.*)$",
  ),
]

/** Subjects of an event on a date. */
const eventSubject = pattern(
  "(?:i|i'm|i've|i'll|we|we're|we've|we'll|my|our|the|\\w+ and i) (?!(?:was |am |also |just |kinda )*(?:wondering|not sure|curious|unsure|asking|trying to figure|need|want|wonder)\\b)",
)
const criticalPattern =
  /\b(?:critical|crucial|vital|essential|life-threatening|allergic|never forget|very important|most important)\b/i

/** A sentence that refers to the one before. */
const backReference = /^[\s.!;,]{0,9}(?:this|that|it)\b[^.!?\n]{0,80}/i

/**
 * Finds facts about the user: statements marked as important, personal facts, deadlines and dated events. `after` is
 * the text that follows: `This is critical.` refers to the clause before it.
 */
export function findImportantFact(clause: Clause, after: string): TextFact | undefined {
  const value = findMarkedFact(clause.text) ?? (isPersonalFact(clause.text) ? trimPhrase(clause.text) : undefined)
  if (value === undefined || contentWords(value).length < 1 || !/\s/.test(value)) return undefined
  const isMarked = !clause.text.startsWith(value.slice(0, 20))
  const isCritical = criticalPattern.test(clause.text) || criticalPattern.test(backReference.exec(after)?.[0] ?? '')
  return {
    field: 'important_facts',
    key: '',
    value: truncateValue(value),
    importance: isCritical ? 9 : isMarked ? 7 : 6,
    from: clause.start,
    to: clause.end,
  }
}

/** Removes a lead such as `remember that …`, because the rest may be a preference or a constraint. */
export function stripReminder({ text, start, end }: Clause): Clause {
  const value = findMarkedFact(text)
  const from = value === undefined ? 0 : Math.max(0, text.indexOf(value))
  return { text: text.slice(from), start: start + from, end }
}

function findMarkedFact(text: string): string | undefined {
  for (const markedFact of markedFactPatterns) {
    const value = trimPhrase(markedFact.exec(text)?.[1] ?? '')
    if (value !== '' && !/^https?:\/\/\S+$/.test(value)) return value
  }
  return undefined
}

function isPersonalFact(text: string): boolean {
  const rest = ownedAttribute.exec(text)?.[2]
  if (rest !== undefined && contentWords(rest).length > 0 && !transientState.test(rest))
    return isDefinite(rest) || (/^(?:my|our)\b/i.test(text) && /^(?:an?|the|to|from|in|at|my|our) /i.test(rest))
  if (personalFactPatterns.some((personalFact) => personalFact.test(text))) return contentWords(text).length >= 2
  return eventSubject.test(text) && datePattern.test(text) && contentWords(text).length >= 3
}

/** True if a text has a name, a date or an amount. */
const isDefinite = (text: string): boolean =>
  datePattern.test(text) ||
  weekdayPattern.test(text) ||
  amountPattern.test(text) ||
  /\b(?:called|named)\b/i.test(text) ||
  /(?:^|\s)\p{Lu}\p{L}/u.test(text)

const foreignImportant =
  /^\W*(?:wichtig|importante?|belangrijk|viktig[t]?|vigtigt|tärkeää|важно|ważne|důležité|önemli|penting|重要|중요|مهم|महत्वपूर्ण)\W*[:：]\s?(.+)$/iu

/** Finds a number in a line marked as important in another language. */
export function findImportantNumber({ text, start, end }: Clause): TextFact | undefined {
  const value = trimPhrase(foreignImportant.exec(text)?.[1] ?? '')
  return /\p{N}/u.test(value)
    ? { field: 'important_facts', key: '', value: truncateValue(value), importance: 7, from: start, to: end }
    : undefined
}
