import type { Clause } from './clauses.ts'
import type { TextFact } from './fields.ts'
import type { LanguageRules } from './languages/language.ts'
import { contentWords, foldText, headWord, keyFromText, nounPhrase, trimPhrase, truncateValue } from './phrases.ts'

type PreferenceRule = {
  readonly match: RegExp
  readonly take: (groups: readonly string[]) => TopicPreference | undefined
}

const adverbs =
  '(?:(?:really|much|strongly|generally|usually|always|still|also|now|definitely|absolutely|actually|just|totally|truly|simply|personally|tend to|do) )*'
const startPattern = (source: string): RegExp => new RegExp(`^${source}`, 'id')

/** Matches phrases that refer to earlier text or only react to it. */
const pointsElsewhere =
  /^(?:it|that|this|these|those|them|him|her|you|your|the|how|what|when|where|who|why|if|all|both|one|everything|anything|something|nothing|seeing|hearing|knowing|to (?:help|chat|talk|share|think|see|know|hear|say|ask|add|thank|believe|imagine|admit|start by)|being able|having to)\b/i

const preferenceRules: readonly PreferenceRule[] = [
  {
    match: startPattern(
      `(?:i|we)(?:'d| would)? ${adverbs}(?:prefer|favou?r|rather (?:have|use|get|see)|opt for) (.+)$`,
    ),
    take: ([phrase = '']) => parsePreferred(phrase),
  },
  {
    match: startPattern('my (?:strong |personal )?preference is (?:for |to use |to have )?(.+)$'),
    take: ([phrase = '']) => parsePreferred(phrase),
  },
  {
    match: startPattern(
      `my (?:(?:all-time|absolute|personal|current|new) )*(favou?rite|preferred|go-to|default) (\\w+(?: \\w+){0,3}?) (?:is|are|would be|has to be) (?!(?:when|how|that|to)\\b)(.+)$`,
    ),
    take: ([kind = '', what = '', value = '']) => parseFavourite(kind, what, value),
  },
  {
    match: startPattern(`i ${adverbs}((?:like|love|enjoy|adore) (.+))$`),
    take: ([statement = '', phrase = '']) => parseTaste(statement, phrase, true),
  },
  {
    match: startPattern(
      "(?:i'm|i am) ((?:really |very |also |still )*(?:a )?(?:big |huge |great )?(?:fan of|into|fond of|keen on|passionate about) (.+))$",
    ),
    take: ([statement = '', phrase = '']) => parseTaste(statement, phrase, true),
  },
  {
    match: startPattern(
      `i ${adverbs}((?:hate|dislike|detest|despise|(?:don't|do not|can't|cannot|no longer) (?:really |particularly |actually )?(?:like|stand|enjoy|love)) (.+))$`,
    ),
    take: ([statement = '', phrase = '']) => parseTaste(statement, phrase, false),
  },
  {
    match: startPattern(
      "(?:i'm|i am) (not (?:really |much of )?(?:a )?(?:big )?(?:fan of|fond of|into|keen on) (.+))$",
    ),
    take: ([statement = '', phrase = '']) => parseTaste(statement, phrase, false),
  },
  {
    match: startPattern(
      '(?:always |only )?(?:use|set|switch to|stick (?:to|with)|go with|make|give me|show|format|indent with|i (?:always )?use|i want|i need|we use) (.+)$',
    ),
    take: ([phrase = '']) =>
      findTopic(trimPhrase(phrase).replace(/^(?:it |everything |things )?(?:in|to|as|with) /i, ''), 'chosen'),
  },
  {
    match: startPattern('(?:always |only )?((?:answer|reply|respond|write|speak|talk|keep|make|text|chat)\\b.+)$'),
    take: ([phrase = '']) => findTopic(trimPhrase(phrase), 'liked'),
  },
  {
    match: startPattern('be (?:more |very |as )?(.+)$'),
    take: ([phrase = '']) => findTopic(trimPhrase(phrase).replace(/ as possible$/i, ''), 'chosen'),
  },
  { match: startPattern('((?:dark|light) (?:mode|theme))$'), take: ([phrase = '']) => findTopic(phrase, 'liked') },
  {
    match: startPattern(
      "(?:you can |just )*(?:call me|(?:my name is|my name's|i go by|i'm called|i am called)) (?:just )?(.+)$",
    ),
    take: ([name = '']) => parseName(name),
  },
  { match: startPattern("(?:i'm|i am) (\\S+(?: \\S+)?), (?:an?|the|your)\\b"), take: ([name = '']) => parseName(name) },
  {
    match: startPattern(
      "(?:.{0,30}\\bmy name, |(?:(?:most )?people|everyone|everybody|friends|they)(?: all)? call me |this is |i'm |i am )(\\S+ \\S+|(?<=my name, |call me )\\S+)$",
    ),
    take: ([name = '']) => (/^\p{Lu}\p{Ll}+(?:$| \p{Lu}\p{Ll}+$)/u.test(name) ? parseName(name) : undefined),
  },
  {
    match: startPattern(
      '((?:only (?:text|e-?mail|call|write|message|phone) (?:me|us)|(?:contact|reach|text|e-?mail|call|write|message|phone)(?: to)? (?:me|us) .{0,30}\\bonly)\\b.*)$',
    ),
    take: ([statement = '']) => ({ key: 'contact', value: trimPhrase(statement) }),
  },
  {
    match: startPattern('my time ?zone is (.+)$'),
    take: ([zone = '']) => ({ key: 'timezone', value: trimPhrase(zone) }),
  },
  {
    match: startPattern(
      "(?:i'm|i am|we're|we are) (?:in|on) (?:the )?((?:utc|gmt) ?[+-]?\\d{0,2}(?::\\d\\d)?|[cepmai]e?[sd]?t|(?:us )?(?:pacific|eastern|central|mountain|central european) time)(?: (?:time ?)?zone)?$",
    ),
    take: ([value = '']) => ({ key: 'timezone', value }),
  },
  { match: startPattern('(?:my pronouns are|i use) (.+)$'), take: ([phrase = '']) => findTopic(phrase, 'liked') },
  {
    match: startPattern(
      "(?:i'm|i am) (?:now |also )*(?:a |an )?((?:no longer |not )?(?:a |an )?(?:strict |mostly )?(?:vegan|vegetarian|pescatarian|lactose[- ]intolerant|gluten[- ]free|coeliac|celiac))\\b",
    ),
    take: ([value = '']) => ({ key: 'diet', value }),
  },
  {
    match: startPattern("i ((?:don't|do not|never|can't|cannot) (?:eat|drink) .+)$"),
    take: ([statement = '']) => ({ key: `diet_${headWord(statement)}`, value: trimPhrase(statement) }),
  },
]

/** Finds what the user prefers, likes or wants to be called. The same subject always gets the same key. */
export function findPreference(clause: Clause, rules: LanguageRules): TextFact | undefined {
  const found = rules.code === 'en' ? findEnglish(clause) : findByTable(clause, rules)
  if (found === undefined || found.key === '' || found.value === '') return undefined
  return {
    field: 'user_preferences',
    key: found.key,
    value: truncateValue(found.value),
    importance: isTaste(clause.folded) ? 8 : 9,
    from: clause.start,
    to: clause.end,
  }
}

function findEnglish({ text, folded }: Clause): TopicPreference | undefined {
  for (const { match, take } of preferenceRules) {
    const ranges = match.exec(folded)?.indices?.slice(1)
    const found = ranges && take(ranges.map((range) => (range === undefined ? '' : text.slice(...range))))
    if (found !== undefined && found.key !== '' && found.value !== '') return found
  }
  return undefined
}

type TableRules = {
  readonly topics: readonly (readonly [key: string, pattern: RegExp])[]
  readonly name: RegExp
  readonly preference: RegExp
}

const tables = new Map<string, TableRules>()

/** Compiles the preference patterns of a language on first use. */
function tableOf({ code, topics, names, preferences }: LanguageRules): TableRules {
  const known = tables.get(code)
  if (known !== undefined) return known
  const table = {
    topics: topics.map(([key, source]) => [key, new RegExp(source, 'id')] as const),
    name: new RegExp(`^(?:${names}) (.+)$`, 'ids'),
    preference: new RegExp(`^(?:${preferences}) (.+)$`, 'ids'),
  }
  tables.set(code, table)
  return table
}

/** Finds a preference with the tables of a language. */
function findByTable(clause: Clause, rules: LanguageRules): TopicPreference | undefined {
  const { topics, name, preference } = tableOf(rules)
  const groupOf = (pattern: RegExp): string | undefined => {
    const range = pattern
      .exec(clause.folded)
      ?.indices?.slice(1)
      .findLast((group) => group !== undefined)
    return range && clause.text.slice(...range)
  }
  for (const [key, topic] of topics) {
    const value = groupOf(topic)
    if (value !== undefined) return { key, value }
  }
  const called = groupOf(name)
  const asName = called === undefined ? undefined : parseName(called)
  if (asName !== undefined) return asName
  const preferred = groupOf(preference)
  if (preferred === undefined) return undefined
  const [noun = ''] = /^[^,;:(]{1,60}/.exec(preferred) ?? []
  const words = contentWords(noun)
    .map(foldText)
    .filter((word) => word.length > 2 && !rules.markers.split(' ').includes(word))
  return words.length === 0 || words.length > 8
    ? undefined
    : { key: words.slice(0, 2).join('_'), value: trimPhrase(clause.text) }
}

const isTaste = (text: string): boolean =>
  /^i\b.*\b(?:like|love|enjoy|adore|fan|into|fond|keen|passionate|hate|dislike|stand)\b/i.test(text)

/** Parses `X` or `X over Y`. The key of the latter names both, so it stays the same when the choice is reversed. */
function parsePreferred(phrase: string): TopicPreference | undefined {
  const preference = trimPhrase(phrase)
  const topic = findTopic(preference, 'chosen')
  if (topic !== undefined) return topic
  if (pointsElsewhere.test(preference) || /\bif\b/i.test(preference)) return undefined
  const [, first = '', second = ''] =
    /^(.+?) (?:over|rather than|instead of|than) (.+)$/i.exec(preference) ??
    /^(\S+(?: \S+)?) to (\S+(?: \S+)?)$/i.exec(preference) ??
    []
  const heads = [headWord(first), headWord(second)].filter((head) => head !== '')
  return {
    key:
      heads.length === 2
        ? heads.sort().join('_or_')
        : headWord(preference.replace(/^to \w+ /i, '').replace(/^(\w+), (?!not\b|but\b|and\b|rather\b)/, '$1 ')),
    value: preference,
  }
}

function parseFavourite(kind: string, subject: string, value: string): TopicPreference | undefined {
  const name = keyFromText(subject, 4)
  const known = topicKey(name)
  if (pointsElsewhere.test(value)) return undefined
  if (known !== undefined)
    return { key: known, value: findTopic(trimPhrase(value), 'chosen')?.value ?? trimPhrase(value) }
  return {
    key: `${/^fav/i.test(kind) ? 'favorite' : kind.toLowerCase().replace('-', '_')}_${name}`,
    value: trimPhrase(value),
  }
}

/** Parses likes and dislikes. A like can select the value of a topic, a dislike never does. */
function parseTaste(statement: string, phrase: string, isLiked: boolean): TopicPreference | undefined {
  if (pointsElsewhere.test(phrase) || /\b(?:this|these|those|them|his|your|it)\b/i.test(phrase)) return undefined
  const topic = isLiked ? findTopic(trimPhrase(phrase), 'liked') : undefined
  if (topic !== undefined) return topic
  // The noun of an activity may follow after a list of adjectives: `creating safe, inclusive spaces`.
  const activity = /^(\w{2,20}ing) (?=\w)/i.exec(phrase)?.[1]
  if (activity !== undefined) return { key: activityKey(activity, phrase), value: trimPhrase(statement) }
  return { key: keyFromText(nounPhrase(phrase)) || keyFromText(phrase), value: trimPhrase(statement) }
}

/** Names an activity by its verb and its noun: `creating_spaces`. */
function activityKey(verb: string, phrase: string): string {
  const noun = headWord(phrase.slice(verb.length).replaceAll(',', ' '))
  return noun === '' || noun === verb.toLowerCase() ? verb.toLowerCase() : `${verb.toLowerCase()}_${noun}`
}

const notNames = /^(?:An?|The|I|I'm|If|When|Later|Back|Maybe|Crazy|Old|Not)$/

/** Requires capitals, which excludes `call me later` and `I'm tired, a bit`. */
function parseName(text: string): TopicPreference | undefined {
  const name = /^["“']?(\p{Lu}[\p{L}\p{M}'’.-]*(?: \p{Lu}[\p{L}\p{M}'’.-]*){0,2})/u.exec(text)?.[1]
  return name === undefined || notNames.test(name) ? undefined : { key: 'name', value: trimPhrase(name) }
}

/** A known subject of preferences. The first group of the pattern is the value. */
type Topic = readonly [key: string, pattern: RegExp]

const answerWord =
  '(?:answers?|repl(?:y|ies)|responses?|explanations?|summar(?:y|ies)|messages?|outputs?|descriptions?|it|them|things|emails?)'
const languageName =
  '(?:british |american |us |uk |australian |canadian |brazilian |mexican |european |simple |plain |traditional |simplified )?(?:english|german|french|spanish|italian|portuguese|dutch|swedish|norwegian|danish|finnish|polish|czech|russian|ukrainian|turkish|arabic|hebrew|hindi|bengali|urdu|chinese|mandarin|cantonese|japanese|korean|vietnamese|thai|indonesian|greek|hungarian|romanian)'
const typefaces =
  'arial|helvetica|times new roman|calibri|cambria|georgia|verdana|garamond|courier(?: new)?|comic sans|roboto|inter|lato|open sans|fira code|jetbrains mono|consolas|menlo|source code pro|futura|tahoma'
const programming =
  'typescript|javascript|python|rust|golang|go|java|kotlin|swift|ruby|php|c\\+\\+|c#|scala|elixir|haskell|clojure|julia|perl|lua|dart'
const pattern = (source: string): RegExp => new RegExp(source, 'i')

/** Topics that are named by the phrase itself, so any verb counts. */
const selfDescribingTopics: readonly Topic[] = [
  [
    'theme',
    pattern(
      '\\b(dark|light|system|night|high[- ]contrast|sepia|solarized)[ -](?:mode|themes?|colou?r scheme|backgrounds?|ui|interfaces?)\\b',
    ),
  ],
  ['font_size', pattern('\\b(\\d{1,2} ?(?:pt|point|px))\\b')],
  ['font', pattern(`\\b(?:the )?(${typefaces}|[\\w-]{3,20}) (?:font|typeface)\\b`)],
  ['font', pattern('\\b(?:font|typeface) (?:is |to |be |of )?([\\w-]{3,20}(?: [\\w-]{3,20})?)$')],
  ['spelling', pattern('\\b(british|american|us|uk|australian|canadian) spellings?\\b')],
  ['units', pattern('\\b(metric|imperial|si|us customary)(?: (?:units?|system|measurements?))\\b')],
  [
    'tone',
    pattern(
      '\\b(formal|informal|casual|friendly|professional|playful|neutral|polite|academic|humorous|serious|warm|direct)(?: and \\w{3,20})? (?:tone|style|voice|register|manner)\\b',
    ),
  ],
  [
    'length',
    pattern(
      `\\b((?:very )?(?:short|brief|concise|succinct|terse|long|detailed|in-depth|thorough|comprehensive)(?:er)?) ${answerWord}\\b`,
    ),
  ],
  [
    'length',
    pattern(
      `\\b(?:keep|make) (?:your |the |my |all )?(?:\\w{3,12} )?${answerWord} (?:\\w{2,6} )?(short|brief|concise|succinct|terse|long|detailed)(?:er)?\\b`,
    ),
  ],
  ['format', pattern('\\b(bullet(?:ed)? (?:points?|lists?)|bullets|numbered lists?|plain text|markdown|latex)\\b')],
  [
    'citation_style',
    pattern('\\b(apa|mla|chicago|ieee|harvard|vancouver)(?: (?:style|format|citations?|referenc\\w{1,4}))\\b'),
  ],
  ['indentation', pattern('\\b(tabs|(?:\\d|two|four|eight)[ -]spaces?)\\b')],
  ['indentation', pattern('\\b(spaces)(?:,? (?:not|over|instead of|rather than|to) tabs| for indent)')],
  ['quotes', pattern('\\b(single|double) quotes\\b')],
  ['pronouns', pattern('\\b((?:he|she|they|ze|xe)/\\w{2,5}(?:/\\w{2,6})?)\\b')],
  ['date_format', pattern('\\b(iso(?: 8601)?|dd[/.-]mm[/.-]yyyy|mm[/.-]dd[/.-]yyyy|yyyy[/.-]mm[/.-]dd)\\b')],
  ['time_format', pattern('\\b((?:12|24)[- ]hours?)\\b')],
  [
    'language',
    pattern(
      `\\b(?:answers?|repl(?:y|ies)|respon(?:d|ses?)|write|speak|talk|chat|text)(?: to)?(?: me)?(?: only)?(?: back)? in (${languageName})\\b`,
    ),
  ],
]

/** Bare words that count only after verbs of choice (`prefer`, `use`), not after `like`. */
const choiceTopics: readonly Topic[] = [
  ['font', pattern(`^(?:the )?(${typefaces})\\b`)],
  [
    'language',
    pattern(
      `^(?:in |to (?:speak|write|talk)(?: in)? )?(${languageName})(?=$|[,.]| (?:for|when|in|as|over|to|rather|instead)\\b)`,
    ),
  ],
  [
    'programming_language',
    pattern(
      `^(?:to (?:code|work|write|program)(?: in)? |coding in |working in )?(${programming})(?=$|[,.]| (?:for|when|over|to|rather|instead|as)(?: |$))`,
    ),
  ],
  ['units', pattern('^(?:in )?(metric|imperial|celsius|fahrenheit|kilomet(?:er|re)s|miles)\\b')],
  ['currency', pattern('^(?:in )?(eur|usd|gbp|chf|jpy|euros|us dollars|dollars|swiss francs|yen)\\b')],
  ['indentation', pattern('^(spaces)\\b')],
  ['tone', pattern('^(?:a )?(formal|informal|casual|friendly|professional|playful|polite)$')],
  ['length', pattern('^(?:more |very )?(short|brief|concise|succinct|terse|detailed|thorough)$')],
  [
    'editor',
    pattern(
      '^(vs ?code|visual studio code|vim|neovim|emacs|intellij(?: idea)?|sublime(?: text)?|pycharm|webstorm|zed|cursor|notepad\\+\\+)(?=$|[,.\\s])',
    ),
  ],
  [
    'operating_system',
    pattern('^(linux|ubuntu|debian|fedora|arch linux|macos|windows(?: 1[01])?|freebsd)(?=$|[,.\\s])'),
  ],
  ['browser', pattern('^(firefox|chrome|safari|brave|edge)(?=$|[,.\\s])')],
  ['package_manager', pattern('^(npm|pnpm|yarn|bun|poetry|conda)(?=$|[,.\\s])')],
]

/** Key and value of a preference. */
type TopicPreference = { readonly key: string; readonly value: string }

/**
 * Finds a known topic in a phrase.
 *
 * @example
 * findTopic('dark mode', 'liked') // { key: 'theme', value: 'dark' }
 */
export function findTopic(phrase: string, verb: 'liked' | 'chosen'): TopicPreference | undefined {
  for (const [key, topicPattern] of verb === 'chosen'
    ? [...selfDescribingTopics, ...choiceTopics]
    : selfDescribingTopics) {
    const value = topicPattern.exec(phrase)?.[1]
    if (value !== undefined) return { key, value }
  }
  return undefined
}

const topicAliases: Readonly<Record<string, string>> = {
  colour_scheme: 'theme',
  color_scheme: 'theme',
  typeface: 'font',
  coding_language: 'programming_language',
  time_zone: 'timezone',
  ide: 'editor',
  text_editor: 'editor',
  code_editor: 'editor',
  os: 'operating_system',
  unit_system: 'units',
  name: 'name',
}
const topicKeys: ReadonlySet<string> = new Set([...selfDescribingTopics, ...choiceTopics].map(([key]) => key))

/** Returns the key of a topic by name or alias, as in `my preferred text editor is …`. */
export const topicKey = (name: string): string | undefined =>
  topicKeys.has(name) ? name : Object.hasOwn(topicAliases, name) ? topicAliases[name] : undefined
