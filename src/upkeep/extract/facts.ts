import type { Clause } from './clauses.ts'
import type { Noted } from './found.ts'
import { bounded, contentWords, tidy } from './wording.ts'

const pattern = (source: string): RegExp => new RegExp(`^${source}`, 'i')

const marked: readonly RegExp[] = [
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
const date = new RegExp(
  `\\b(?:${month}\\.? \\d{1,4}(?:st|nd|rd|th)?|\\d{1,2}(?:st|nd|rd|th)?(?: of)? ${month}|(?:in|since|by|until|from|of) ${month}|\\d{4}-\\d\\d-\\d\\d|\\d{1,2}[/.]\\d{1,2}[/.]\\d{2,4})\\b`,
  'i',
)
const weekday = /\b(?:mon|tues|wednes|thurs|fri|satur|sun)day\b/i
const amount =
  /(?:[$€£¥]\s?\d|\d[\d.,]*\s?(?:%|k\b|eur|usd|gbp|euros?|dollars?|pounds|hours?|days?|weeks?|months?|years?|people|users?|words?|pages?|kg|km|miles|gb|mb|ms)\b|\b\d{2,})/i

const attributes =
  'name|birthday|age|e-?mail(?: address)?|phone(?: number)?|address|job(?: title)?|role|title|profession|hometown|city|country|nationality|salary|income|budget|rent|deadline|due date|goal|aim|target|major|degree|school|university|company|employer|team|manager|boss|coach|mentor|tutor|therapist|doctor|wife|husband|spouse|partner|girlfriend|boyfriend|fianc[eé]e?|mother|mom|mum|father|dad|parents|sister|brother|son|daughter|kids?|child|children|aunt|uncle|cousin|grand(?:ma|pa|mother|father|son|daughter)|friend|roommate|neighbou?r|colleague|co-?worker|dog|cat|pet|puppy|kitten|horse|car|bike|hobby|hobbies|passion|dream|stack|tech stack|database|server|port|username|user id|blood type|height|weight|size|appointment|meeting|interview|exam|flight|trip|wedding|anniversary|graduation|surgery|launch(?: date)?|release(?: date)?|exhibition|performance|competition|tournament|conference|presentation|demo|limit|quota|version|repo(?:sitory)?|branch|domain|thesis|dissertation|project|app|product|website|book|novel|course'
const owned = new RegExp(
  `^(?:(?:my|our) (?:[\\w'’-]+ ){0,3}?|the (?:[\\w-]+ ){0,2}?)(${attributes})s?(?:'s|,? [\\p{Lu}][\\p{L}'’-]+,?)? (?:is|are|was|were|will be|falls|starts|begins|ends|has|turns|works|lives|moved|got|named|called)\\b ?(.*)$`,
  'iu',
)
/** The state things are in for the moment: gone with the next message. */
const passing =
  /^(?:not |n't|now |still |also |so |very |really |too |pretty |quite |just |currently )*(?:working|failing|broken|running|slow|getting|going|giving|throwing|returning|showing|causing|taking|having|being|doing|trying|great|good|bad|fine|ok|okay|nice|awesome|amazing|cool|wrong|right|clear|done|ready|empty|missing|null|undefined|here|there|below|above|as follows|similar|different|important|hard|tough|easy|difficult|possible|that|how|what|why|when|where|whether|if|not)\b/i
const things =
  "(?:dogs?|cats?|pets?|puppy|puppies|kittens?|horses?|sons?|daughters?|kids?|child|children|brothers?|sisters?|siblings?|twins|wife|husband|partner|girlfriend|boyfriend|fianc[eé]e?|degree|phd|master'?s|bachelor'?s|diploma|job|company|business|startup|house|apartment|car|allergy|allergies|asthma|diabetes|adhd|dyslexia|interview|appointment|exam|meeting|deadline|flight|wedding|performance|competition|budget|team of)"

const telling: readonly RegExp[] = [
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

/** The subjects of what can happen on a day. */
const happening = pattern(
  "(?:i|i'm|i've|i'll|we|we're|we've|we'll|my|our|the|\\w+ and i) (?!(?:was |am |also |just |kinda )*(?:wondering|not sure|curious|unsure|asking|trying to figure|need|want|wonder)\\b)",
)
const critical =
  /\b(?:critical|crucial|vital|essential|life-threatening|allergic|never forget|very important|most important)\b/i

/** A sentence that speaks of the one before it. */
const thereupon = /^[\s.!;,]{0,9}(?:this|that|it)\b[^.!?\n]{0,80}/i

/**
 * What a clause says that will matter later: what is said to be important, who the user is, what is owed when, and what
 * happens on a date. `after` is what follows: `This is critical.` is about what was said before it.
 */
export function factIn(clause: Clause, after: string): Noted | undefined {
  const value = markedIn(clause.text) ?? (tells(clause.text) ? tidy(clause.text) : undefined)
  if (value === undefined || contentWords(value).length < 1 || !/\s/.test(value)) return undefined
  const isMarked = !clause.text.startsWith(value.slice(0, 20))
  const stressed = critical.test(clause.text) || critical.test(thereupon.exec(after)?.[0] ?? '')
  return {
    field: 'important_facts',
    key: '',
    value: bounded(value),
    importance: stressed ? 9 : isMarked ? 7 : 6,
    from: clause.start,
    to: clause.end,
  }
}

/** The clause that a reminder such as `remember that …` leads in, which may be more than a fact. */
export function remindedOf({ text, start, end }: Clause): Clause {
  const value = markedIn(text)
  const from = value === undefined ? 0 : Math.max(0, text.indexOf(value))
  return { text: text.slice(from), start: start + from, end }
}

function markedIn(text: string): string | undefined {
  for (const mark of marked) {
    const value = tidy(mark.exec(text)?.[1] ?? '')
    if (value !== '' && !/^https?:\/\/\S+$/.test(value)) return value
  }
  return undefined
}

function tells(text: string): boolean {
  const rest = owned.exec(text)?.[2]
  if (rest !== undefined && contentWords(rest).length > 0 && !passing.test(rest))
    return isDefinite(rest) || (/^(?:my|our)\b/i.test(text) && /^(?:an?|the|to|from|in|at|my|our) /i.test(rest))
  if (telling.some((tell) => tell.test(text))) return contentWords(text).length >= 2
  return happening.test(text) && date.test(text) && contentWords(text).length >= 3
}

/** Names somebody, somewhere, a day or an amount. */
const isDefinite = (text: string): boolean =>
  date.test(text) ||
  weekday.test(text) ||
  amount.test(text) ||
  /\b(?:called|named)\b/i.test(text) ||
  /(?:^|\s)\p{Lu}\p{L}/u.test(text)

const matters =
  /^\W*(?:wichtig|importante?|belangrijk|viktig[t]?|vigtigt|tärkeää|важно|ważne|důležité|önemli|penting|重要|중요|مهم|महत्वपूर्ण)\W*[:：]\s?(.+)$/iu

/** Of a language whose sentences are not understood: a line said to be important, if there is a number in it. */
export function numberThatMatters({ text, start, end }: Clause): Noted | undefined {
  const value = tidy(matters.exec(text)?.[1] ?? '')
  return /\p{N}/u.test(value)
    ? { field: 'important_facts', key: '', value: bounded(value), importance: 7, from: start, to: end }
    : undefined
}
