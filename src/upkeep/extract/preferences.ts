import type { Clause } from './clauses.ts'
import type { Noted } from './found.ts'
import { topicCalled, topicIn } from './topics.ts'
import { bounded, headOf, keyFrom, nounPhrase, tidy } from './wording.ts'

type Preference = { readonly key: string; readonly value: string }
type Rule = { readonly match: RegExp; readonly take: (groups: readonly string[]) => Preference | undefined }

const often =
  '(?:(?:really|much|strongly|generally|usually|always|still|also|now|definitely|absolutely|actually|just|totally|truly|simply|personally|tend to|do) )*'
const pattern = (source: string): RegExp => new RegExp(`^${source}`, 'i')

/** Points at something said before, or only reacts to it: nothing to remember. */
const pointing =
  /^(?:it|that|this|these|those|them|him|her|you|your|the|how|what|when|where|who|why|if|all|both|one|everything|anything|something|nothing|seeing|hearing|knowing|to (?:help|chat|talk|share|think|see|know|hear|say|ask|add|thank|believe|imagine|admit|start by)|being able|having to)\b/i

const rules: readonly Rule[] = [
  {
    match: pattern(`(?:i|we)(?:'d| would)? ${often}(?:prefer|favou?r|rather (?:have|use|get|see)|opt for) (.+)$`),
    take: ([phrase = '']) => preferred(phrase),
  },
  {
    match: pattern('my (?:strong |personal )?preference is (?:for |to use |to have )?(.+)$'),
    take: ([phrase = '']) => preferred(phrase),
  },
  {
    match: pattern(
      `my (?:(?:all-time|absolute|personal|current|new) )*(favou?rite|preferred|go-to|default) (\\w+(?: \\w+){0,3}?) (?:is|are|would be|has to be) (?!(?:when|how|that|to)\\b)(.+)$`,
    ),
    take: ([kind = '', what = '', value = '']) => favourite(kind, what, value),
  },
  {
    match: pattern(`i ${often}((?:like|love|enjoy|adore) (.+))$`),
    take: ([said = '', phrase = '']) => tasted(said, phrase, true),
  },
  {
    match: pattern(
      "(?:i'm|i am) ((?:really |very |also |still )*(?:a )?(?:big |huge |great )?(?:fan of|into|fond of|keen on|passionate about) (.+))$",
    ),
    take: ([said = '', phrase = '']) => tasted(said, phrase, true),
  },
  {
    match: pattern(
      `i ${often}((?:hate|dislike|detest|despise|(?:don't|do not|can't|cannot|no longer) (?:really |particularly |actually )?(?:like|stand|enjoy|love)) (.+))$`,
    ),
    take: ([said = '', phrase = '']) => tasted(said, phrase, false),
  },
  {
    match: pattern("(?:i'm|i am) (not (?:really |much of )?(?:a )?(?:big )?(?:fan of|fond of|into|keen on) (.+))$"),
    take: ([said = '', phrase = '']) => tasted(said, phrase, false),
  },
  {
    match: pattern(
      '(?:always |only )?(?:use|set|switch to|stick (?:to|with)|go with|make|give me|show|format|indent with|i (?:always )?use|i want|i need|we use) (.+)$',
    ),
    take: ([phrase = '']) =>
      topicIn(tidy(phrase).replace(/^(?:it |everything |things )?(?:in|to|as|with) /i, ''), 'chosen'),
  },
  {
    match: pattern('(?:always |only )?((?:answer|reply|respond|write|speak|talk|keep|make|text|chat)\\b.+)$'),
    take: ([phrase = '']) => topicIn(tidy(phrase), 'liked'),
  },
  {
    match: pattern('be (?:more |very |as )?(.+)$'),
    take: ([phrase = '']) => topicIn(tidy(phrase).replace(/ as possible$/i, ''), 'chosen'),
  },
  { match: pattern('((?:dark|light) (?:mode|theme))$'), take: ([phrase = '']) => topicIn(phrase, 'liked') },
  {
    match: pattern(
      "(?:you can |just )*(?:call me|(?:my name is|my name's|i go by|i'm called|i am called)) (?:just )?(.+)$",
    ),
    take: ([name = '']) => called(name),
  },
  { match: pattern("(?:i'm|i am) (\\S+(?: \\S+)?), (?:an?|the|your)\\b"), take: ([name = '']) => called(name) },
  { match: pattern('my time ?zone is (.+)$'), take: ([zone = '']) => ({ key: 'timezone', value: tidy(zone) }) },
  {
    match: pattern(
      "(?:i'm|i am|we're|we are) (?:in|on) (?:the )?((?:utc|gmt) ?[+-]?\\d{0,2}(?::\\d\\d)?|[cepmai]e?[sd]?t|(?:us )?(?:pacific|eastern|central|mountain|central european) time)(?: (?:time ?)?zone)?$",
    ),
    take: ([value = '']) => ({ key: 'timezone', value }),
  },
  { match: pattern('(?:my pronouns are|i use) (.+)$'), take: ([phrase = '']) => topicIn(phrase, 'liked') },
  {
    match: pattern(
      "(?:i'm|i am) (?:a |an )?((?:strict |mostly )?(?:vegan|vegetarian|pescatarian|lactose[- ]intolerant|gluten[- ]free|coeliac|celiac))\\b",
    ),
    take: ([value = '']) => ({ key: 'diet', value }),
  },
  {
    match: pattern("i ((?:don't|do not|never|can't|cannot) (?:eat|drink) .+)$"),
    take: ([said = '']) => ({ key: `diet_${headOf(said)}`, value: tidy(said) }),
  },
]

/** What a clause says the user prefers, likes or wants to be called; the same matter always has the same key. */
export function preferenceIn({ text, start, end }: Clause): Noted | undefined {
  for (const { match, take } of rules) {
    const groups = match.exec(text)?.slice(1)
    const found = groups === undefined ? undefined : take(groups)
    if (found !== undefined && found.key !== '' && found.value !== '')
      return {
        field: 'user_preferences',
        key: found.key,
        value: bounded(found.value),
        importance: isTaste(text) ? 8 : 9,
        from: start,
        to: end,
      }
  }
  return undefined
}

const isTaste = (text: string): boolean =>
  /^i\b.*\b(?:like|love|enjoy|adore|fan|into|fond|keen|passionate|hate|dislike|stand)\b/i.test(text)

/** `X` or `X over Y`; the key of the latter names both, so that it is the same when the choice is reversed. */
function preferred(phrase: string): Preference | undefined {
  const wish = tidy(phrase)
  const topic = topicIn(wish, 'chosen')
  if (topic !== undefined) return topic
  if (pointing.test(wish) || /\bif\b/i.test(wish)) return undefined
  const [, first = '', second = ''] =
    /^(.+?) (?:over|rather than|instead of|than) (.+)$/i.exec(wish) ??
    /^(\S+(?: \S+)?) to (\S+(?: \S+)?)$/i.exec(wish) ??
    []
  const heads = [headOf(first), headOf(second)].filter((head) => head !== '')
  return { key: heads.length === 2 ? heads.sort().join('_or_') : headOf(wish.replace(/^to \w+ /i, '')), value: wish }
}

function favourite(kind: string, what: string, value: string): Preference | undefined {
  const name = keyFrom(what, 4)
  const known = topicCalled(name)
  if (pointing.test(value)) return undefined
  if (known !== undefined) return { key: known, value: topicIn(tidy(value), 'chosen')?.value ?? tidy(value) }
  return {
    key: `${/^fav/i.test(kind) ? 'favorite' : kind.toLowerCase().replace('-', '_')}_${name}`,
    value: tidy(value),
  }
}

/** What is liked can be about a topic; what is disliked never chooses a value of one. */
function tasted(said: string, phrase: string, isLiked: boolean): Preference | undefined {
  if (pointing.test(phrase) || /\b(?:this|these|those|them|his|your|it)\b/i.test(phrase)) return undefined
  const topic = isLiked ? topicIn(tidy(phrase), 'liked') : undefined
  if (topic !== undefined) return topic
  return { key: keyFrom(nounPhrase(phrase)) || keyFrom(phrase), value: tidy(said) }
}

const notNames = /^(?:An?|The|I|I'm|If|When|Later|Back|Maybe|Crazy|Old|Not)$/

/** A name has capitals; `call me later` and `I'm tired, a bit` have none. */
function called(text: string): Preference | undefined {
  const name = /^["“']?(\p{Lu}[\p{L}\p{M}'’.-]*(?: \p{Lu}[\p{L}\p{M}'’.-]*){0,2})/u.exec(text)?.[1]
  return name === undefined || notNames.test(name) ? undefined : { key: 'name', value: tidy(name) }
}
