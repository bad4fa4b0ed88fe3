/** What preferences are often about. The first group of a pattern is the value. */
type Topic = readonly [key: string, pattern: RegExp]

const answers =
  '(?:answers?|repl(?:y|ies)|responses?|explanations?|summar(?:y|ies)|messages?|outputs?|descriptions?|it|them|things|emails?)'
const tongue =
  '(?:british |american |us |uk |australian |canadian |brazilian |mexican |european |simple |plain |traditional |simplified )?(?:english|german|french|spanish|italian|portuguese|dutch|swedish|norwegian|danish|finnish|polish|czech|russian|ukrainian|turkish|arabic|hebrew|hindi|bengali|urdu|chinese|mandarin|cantonese|japanese|korean|vietnamese|thai|indonesian|greek|hungarian|romanian)'
const typefaces =
  'arial|helvetica|times new roman|calibri|cambria|georgia|verdana|garamond|courier(?: new)?|comic sans|roboto|inter|lato|open sans|fira code|jetbrains mono|consolas|menlo|source code pro|futura|tahoma'
const programming =
  'typescript|javascript|python|rust|golang|go|java|kotlin|swift|ruby|php|c\\+\\+|c#|scala|elixir|haskell|clojure|julia|perl|lua|dart'
const pattern = (source: string): RegExp => new RegExp(source, 'i')

/** They name what they are about: understood after any verb. */
const named: readonly Topic[] = [
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
      `\\b((?:very )?(?:short|brief|concise|succinct|terse|long|detailed|in-depth|thorough|comprehensive)(?:er)?) ${answers}\\b`,
    ),
  ],
  [
    'length',
    pattern(
      `\\b(?:keep|make) (?:your |the |my |all )?(?:\\w{3,12} )?${answers} (?:\\w{2,6} )?(short|brief|concise|succinct|terse|long|detailed)(?:er)?\\b`,
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
      `\\b(?:answers?|repl(?:y|ies)|respon(?:d|ses?)|write|speak|talk|chat|text)(?: to)?(?: me)?(?: only)?(?: back)? in (${tongue})\\b`,
    ),
  ],
]

/** Bare words that mean one of these only when they are chosen (`prefer`, `use`), not when they are merely liked. */
const chosen: readonly Topic[] = [
  ['font', pattern(`^(?:the )?(${typefaces})\\b`)],
  [
    'language',
    pattern(
      `^(?:in |to (?:speak|write|talk)(?: in)? )?(${tongue})(?=$|[,.]| (?:for|when|in|as|over|to|rather|instead)\\b)`,
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

/** The key and the value of a preference whose topic is known. */
export type Told = { readonly key: string; readonly value: string }

/**
 * What a phrase says about one of the known topics.
 *
 * @example
 * topicIn('dark mode', 'liked') // { key: 'theme', value: 'dark' }
 */
export function topicIn(phrase: string, how: 'liked' | 'chosen'): Told | undefined {
  for (const [key, pattern] of how === 'chosen' ? [...named, ...chosen] : named) {
    const value = pattern.exec(phrase)?.[1]
    if (value !== undefined) return { key, value }
  }
  return undefined
}

const names: Readonly<Record<string, string>> = {
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
const keys: ReadonlySet<string> = new Set([...named, ...chosen].map(([key]) => key))

/** The key of a topic that is called by its name, as in `my preferred text editor is …`. */
export const topicCalled = (name: string): string | undefined =>
  keys.has(name) ? name : Object.hasOwn(names, name) ? names[name] : undefined
