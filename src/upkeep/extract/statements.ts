import type { Clause } from './clauses.ts'
import type { TextFact } from './fields.ts'
import type { LanguageRules } from './languages/language.ts'
import { contentWords, headWord, keyFromText, nounPhrase, trimPhrase, truncateValue } from './phrases.ts'
import { findTechnology } from './technologies.ts'

const pattern = (source: string): RegExp => new RegExp(`^${source}`, 'i')

type StatementRules = {
  readonly decision: RegExp
  readonly uses: RegExp
  readonly prohibition: RegExp
  readonly demand: RegExp
  readonly limit: RegExp
  readonly firstPerson: RegExp
  readonly habit: RegExp
  readonly lasting: RegExp
}

const compiled = new Map<string, StatementRules>()

/** Accepts `dont` and `lets` as well. */
const withoutApostrophes = (source: string): string => source.replace(/n't/g, "n'?t").replace(/let's/g, "let'?s")

/** Compiles the statement patterns of a language on first use. */
function statementRules(rules: LanguageRules): StatementRules {
  const known = compiled.get(rules.code)
  if (known !== undefined) return known
  const { decisions, uses, prohibitions, demands, limits, units, subject, habits, lasting } = rules
  const number = '(?:\\d[\\d.,]{0,12}|one|two|three|four|five|six|seven|eight|nine|ten|a|ein|une?|een|um)'
  const result = {
    decision: new RegExp(`^(?<verb>${withoutApostrophes(decisions)})\\s+(?<choice>\\S.*)$`, 'ids'),
    uses: new RegExp(`^(?:${uses})\\s+(?<rest>\\S.*)$`, 'ids'),
    prohibition: new RegExp(`^(?:${withoutApostrophes(prohibitions)})(?:(?<=['\\s])|(?!\\w))\\s?(?<subject>.+)$`, 'is'),
    demand: new RegExp(`^(?:${demands})(?:(?<=['\\s])|(?!\\w))\\s?(?<subject>.+)$`, 'is'),
    limit: new RegExp(
      `\\b(?:${limits}) ?${number}[ -]?(?<unit>${units})(?![\\w])|\\b\\d[\\d.,]{0,12} ?(?<unitBefore>${units}) (?:max|maximum|at most|tops|hochstens|maximal|maximum|como maximo|no maximo|hooguit)\\b`,
      'i',
    ),
    habit: new RegExp(`^(?:${withoutApostrophes(habits)})(?<subject>.+)$`, 'is'),
    lasting: new RegExp(`\\b(?:${lasting})\\b`, 'i'),
    firstPerson: new RegExp(`^(?:${subject.endsWith('?') ? '(?:yo|eu|nosotros|nos) ' : subject})`, 'i'),
  }
  compiled.set(rules.code, result)
  return result
}

/** Starts of clauses that only sound like a rule: small talk, or a report without a subject. */
const smallTalk =
  /^(?:worry|worries|mind|know|think|thought|knew|forget|hesitate|get me|get it|you|want|have|had|has|see|seen|heard|hear|understand|remember|need|be|quit|miss|stress|panic|apologi[sz]e|settle|underestimate|saw|came|went|made|took|gave|found|told|said|sweat|bother|hold|give up|let|ask|tell|been|again|too|really|ever|stop|a|an|the|in|before|got|felt|did|liked?|lose|miss out|even|gets?|fails?|is|was|wait|feel|care|believe|expect|blame|say|help|problem\w{0,2}|ahnung|sorgen?|zeit|lust|idee|idea|ideia|more|one|way|rush|doubt|luck|clue|nada|hay|se|sei|tengo|tenho|probleem|zorgen|pas)\b|^\w{2,20}ed\b/i
const shortProhibition =
  /^[Nn]o (?!(?:[\w-]+ )*(?:found|available|left|yet)$)(?!(?:problem|worr|idea|thanks|way|need|rush|hurry|matter|doubt|one|offen[cs]e|big deal|luck|clue|joke|pressure|kidding|comment|time|reason|longer|more than|i|you|it|that|this|we|he|she|they|my|the|but|and|wonder|chance|surprise|difference|sign|issue|error|result|change|such|good|stress)\b)([\w-]+(?: [\w-]+){0,2})$/
/** Limits that need no order before them, and reports that only look like one. */
const strongLimit =
  /\b(?:at most|max(?:imum)?|no (?:more|longer) than|not (?:more|longer) than|can't exceed|cannot exceed|must not exceed|(?:i'd|we'd) like (?:it|that|this))\b/i
const pastReport = /^(?:i|we|it|he|she|they) (?:was|were|had|ran|did|got|used|took|made|saw|went)\b/i
/** Orders about the way of answering. */
const order =
  /^(?:give|show|send|use|write|answer|reply|respond|put|add|include|format|call|tell|reply|pay|ship|deliver|address|speak|text|e-?mail|gib|zeig|schreib|antworte|nutze|verwende|donne|montre|ecris|reponds|utilise|mets|dame|muestra|escribe|responde|usa|pon|de-me|mostre|escreva|responda|use|geef|toon|schrijf|antwoord|gebruik)\w{0,3}\b/i
/** First words of limits: a report such as `I ran under 10 km` is none. */
const limitStart =
  /^(?:(?:always|only|try to|make sure to|please) )*(?:keep|limit|cap|restrict|make|write|answer|reply|respond|use|stay|stick|give|summari[sz]e|responses?|answers?|repl(?:y|ies)|max|maximum|at most|no more|no longer|under|below|up to|i (?:only )?(?:want|need)|each|every|all|it|they|everything|the [\w -]{2,40} (?:must|should|has to|have to|needs? to|can't|cannot|is limited)|my [\w -]{2,30} (?:must|should|has to)|we (?:must|need to|have to|can only)|don't (?:exceed|go over)|do not (?:exceed|go over)|never (?:exceed|go over|write|use))\b/i

/** Units of the length of a text: of several limits the last one applies. */
const lengthUnit =
  /^(?:wor[dt]|mot|palavra|palabra|woorden|char|zeichen|caract|tekens|tokens?|sentences?|satz|phrases|frases|oraciones|zinnen|paragra|absatz|alinea|bullet|lines?)/i
const answerNoun =
  /\b(?:answers?|repl(?:y|ies)|respon\w{1,6}|explanations?|antwort\w{0,3}|repon(?:se|ds|dez)\w{0,2}|respuestas?|respostas?|antwoord\w{0,3})\b|^(?:at most|max|under|no more|keep (?:it|them|things)|be\b)/i

/** True for a limit on the length of answers, which is a preference: `longer answers` replaces it. */
const isAnswerLength = ({ folded }: Clause, unit: string): boolean => lengthUnit.test(unit) && answerNoun.test(folded)

/** Finds rules such as `never deploy on Fridays`, `always run the tests` and `keep answers under 100 words`. */
export function findConstraint(clause: Clause, rules: LanguageRules): TextFact | undefined {
  const { prohibition, demand, limit, firstPerson, lasting } = statementRules(rules)
  const { unit: unitAfter, unitBefore } = limit.exec(clause.folded)?.groups ?? {}
  const unit = unitAfter ?? unitBefore
  const isLimit =
    unit !== undefined &&
    (rules.code === 'en'
      ? limitStart.test(clause.folded) || (strongLimit.test(clause.folded) && !pastReport.test(clause.folded))
      : !firstPerson.test(clause.folded))
  if (isLimit)
    return isAnswerLength(clause, unit)
      ? { ...constraintFact(clause, 'length'), field: 'user_preferences' }
      : constraintFact(clause, `${constraintsKey}.${lengthUnit.test(unit) ? 'length' : keyFromText(unit, 2)}`)
  const isLasting =
    findTechnology(clause.folded) === undefined &&
    ((lasting.test(`${clause.before} ${clause.folded}`) && order.test(clause.folded)) ||
      (/\byou(?: please| kindly| also){0,3}$/i.test(clause.before) && order.test(clause.folded)) ||
      (/\b(?:please|always)$/i.test(clause.before.trim()) && /^use\b/i.test(clause.folded)))
  const subject =
    prohibition.exec(clause.folded)?.groups?.subject ??
    demand.exec(clause.folded)?.groups?.subject ??
    (isLasting ? clause.folded : undefined) ??
    (rules.code === 'en' ? findShortProhibition(clause) : undefined)
  if (subject === undefined || smallTalk.test(subject)) return undefined
  const key = constraintKeyFor(subject)
  return key === undefined ? undefined : constraintFact(clause, key)
}

/** Finds `no semicolons, please`; without `please`, only of things in the plural. */
function findShortProhibition({ folded, before }: Clause): string | undefined {
  const subject = shortProhibition.exec(trimPhrase(folded))?.[1]
  const isPolite = /\bplease\b/i.test(`${before} ${folded}`)
  return subject !== undefined && (isPolite || /s\b/.test(subject)) ? subject : undefined
}

/** Finds habits and inabilities: `I never deploy after 16:00`, `I can't take calls at work`. */
export function findHabit(clause: Clause, rules: LanguageRules): TextFact | undefined {
  const subject = statementRules(rules).habit.exec(clause.folded)?.groups?.subject
  const key = subject === undefined ? undefined : constraintKeyFor(subject)
  return key === undefined ? undefined : constraintFact(clause, key)
}

const constraintFact = ({ text, start, end }: Clause, key: string): TextFact => ({
  field: 'custom_fields',
  key,
  value: truncateValue(trimPhrase(text)),
  importance: 9,
  from: start,
  to: end,
})

/** Key prefix of constraints in `custom_fields`. Each has its own key, so that rules do not displace one another. */
export const constraintsKey = 'constraints'

/** Words that do not tell what a constraint is about. */
const constraintFiller =
  /\b(?:never|always|don't|do not|must not|must|avoid|use|using|ever|any|want|de|des|du|les|dans|plus|pas|une|el|los|las|del|y|por|para|uma|das|dos|der|die|den|dem|eine?n?|het|een|van|voor|[ld](?='))\b'?/gi

/** Derives the key of the constraint on a subject; `always …` and `never …` on the same subject have the same key. */
export function constraintKeyFor(subject: string): string | undefined {
  const name = keyFromText(subject.replace(constraintFiller, ' '), 4)
  return name === '' ? undefined : `${constraintsKey}.${name}`
}

/** Decisions on a pronoun have no meaning without the context. */
const vagueDecision = /\b(?:it|that|this|them|those|these|you|something|one|happen)$|\b(?:for it|this \w+)\b/i
/** Orders without a subject may be about anything: a technology or a change of mind must be named. */
const isNamedChoice = /^.{2,40} (?:then|it is)(?=$|,)/i
const bareOrder =
  /^(?:go|going|switch|stick|move|use|please|just|always|nimm|nehmt|dann|prends|utilise|usa|elige|escolha|neem|kies|gebruik|dan)\b/i
const purpose =
  /\b(?:for|fur|pour|para|voor)\b (?:the |our |my |die |das |den |der |unsere? |meine? |le |la |les |notre |el |los |las |nuestr[oa] |o |a |os |as |nosso |nossa |de |het |onze )?([\w -]{2,30}?)(?=$|[,.;]| (?:instead|and|because|now)\b)/i

/** Finds a decision, in its own words. Its slot is the category of a technology, its purpose, or its noun. */
export function findDecision(clause: Clause, rules: LanguageRules, isChange: boolean): TextFact | undefined {
  const match = statementRules(rules).decision.exec(clause.folded)
  const { verb = '', choice = '' } = match?.groups ?? {}
  const statement = trimPhrase(clause.text)
  if (match === null || vagueDecision.test(statement)) return undefined
  const technology = findTechnology(choice.slice(0, 60))
  if (technology === undefined && bareOrder.test(verb) && !(isChange && contentWords(choice).length <= 4))
    return undefined
  const key = technology === undefined ? choiceKey(verb, choice) : qualify(technology.slot, choice)
  return {
    field: 'key_decisions',
    key,
    value: truncateValue(statement),
    importance: 8,
    from: clause.start,
    to: clause.end,
  }
}

const insteadOf = /\b(?:instead of|au lieu d|en (?:vez|lugar) de|em vez d|in plaats van|(?:an)?statt)\b/i

/** Finds a choice without a verb of decision: `TypeScript then`, `Porto instead of Lisbon`. */
export function findChoice(clause: Clause): TextFact | undefined {
  const isReplacement = insteadOf.test(clause.folded)
  const technology = isReplacement || isNamedChoice.test(clause.folded) ? findTechnology(clause.folded) : undefined
  if (!isReplacement && technology === undefined) return undefined
  if (contentWords(clause.folded).length > 14) return undefined
  return {
    field: 'key_decisions',
    key: technology?.slot ?? '',
    value: truncateValue(trimPhrase(clause.text)),
    importance: 8,
    from: clause.start,
    to: clause.end,
  }
}

/** Adds the purpose to the slot of a technology: `database.reports` for `MySQL for the reports`. */
function qualify(slot: string, phrase: string): string {
  const qualifier = keyFromText(purpose.exec(phrase)?.[1] ?? '', 2)
  return qualifier === '' || qualifier === slot ? slot : `${slot}.${qualifier}`
}

/** Returns the purpose of a choice, or its noun after an article; no key if it has neither. */
function choiceKey(verb: string, choice: string): string {
  const use = keyFromText(purpose.exec(choice)?.[1] ?? '', 2)
  if (use !== '') return use
  if (/\bto$/.test(verb)) return keyFromText(choice.replace(dateWord, ' '), 2)
  const noun =
    /^(?:the|an?|our|die|das|den|der|le|la|les|el|los|las|o|a|de|het|een|eine[nrm]?|une?|una?|uma?) ([\w -]{3,40})$/i.exec(
      nounPhrase(choice),
    )?.[1]
  return noun === undefined || contentWords(noun).length < 2 ? '' : headWord(noun)
}

const dateWord =
  /\b(?:(?:mon|tues|wednes|thurs|fri|satur|sun)day|(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]{0,6}|\d+(?:st|nd|rd|th)?|tomorrow|next|week|month)\b/gi

const version = /^[ -]?v?\d+(?:\.\d+){0,3}/i

/** Finds the technologies that the user or a project uses, one fact for each slot. */
export function findUses(clause: Clause, rules: LanguageRules): readonly TextFact[] {
  const match = statementRules(rules).uses.exec(clause.folded)
  const rest = match?.groups?.rest
  if (match === null || rest === undefined) return []
  const offset = clause.folded.length - rest.length
  const isNegative = /\b(?:no longer|don't|not|nicht|plus|ya no|nao|niet)\b/i.test(clause.folded)
  const facts: TextFact[] = []
  for (let at = 0; facts.length < 5; ) {
    const found = findTechnology(rest.slice(at, at + 120))
    if (found === undefined) break
    const from = at + found.index
    const to = from + found.name.length
    const end = to + (version.exec(rest.slice(to))?.[0].length ?? 0)
    if (!facts.some(({ key }) => key === found.slot) && !(isNegative && facts.length > 0))
      facts.push({
        field: 'important_facts',
        key: found.slot,
        // `We no longer use Redis` is the value itself.
        value: isNegative ? truncateValue(trimPhrase(clause.text)) : clause.text.slice(offset + from, offset + end),
        importance: 6,
        from: clause.start,
        to: clause.end,
      })
    at = end
  }
  return facts
}

const markedFacts: readonly RegExp[] = [
  pattern(
    '(?:the|our|my|one) (?:key|main|most important|critical|crucial|central|primary|principal|important|biggest) (?:findings?|results?|points?|takeaways?|conclusions?|insights?|facts?|requirements?|lessons?)(?: here)? (?:is|are|was|were)(?: that)?:? (.+)$',
  ),
]
const month =
  '(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)'
const datePattern = new RegExp(
  `\\b(?:${month}\\.? \\d{1,4}(?:st|nd|rd|th)?|\\d{1,2}(?:st|nd|rd|th)?(?: of)? ${month}|(?:in|since|by|until|from|of) ${month}|\\d{4}-\\d\\d-\\d\\d|\\d{1,2}[/.]\\d{1,2}[/.]\\d{2,4})\\b`,
  'i',
)
const things =
  "(?:dogs?|cats?|pets?|puppy|puppies|kittens?|horses?|sons?|daughters?|kids?|child|children|brothers?|sisters?|siblings?|twins|wife|husband|partner|girlfriend|boyfriend|fiancee?|degree|phd|master'?s|bachelor'?s|diploma|job|company|business|startup|house|apartment|car|interview|appointment|exam|meeting|deadline|flight|wedding|performance|competition|budget|team of)"

const personalFacts: readonly RegExp[] = [
  pattern(
    '(?:i|we) (?:currently |now |still |both |used to |also )*(?:live|work|study|teach|volunteer|reside) (?:in|at|for|as|on|with|near|from) (?!.*\\b(?:hours?|minutes?)\\b)(.+)$',
  ),
  pattern(
    "(?:i'm|i am|we're|we are) (?:currently |now |actually )*(?:studying|pregnant|retired|expecting|vaccinated) ?(.*)$",
  ),
  pattern(
    "(?:i'm|i am) (?:also |actually |currently |now )*an? (?!bit\\b|little\\b|lot\\b|few\\b|couple\\b|big fan|huge fan|fan\\b|total\\b|complete\\b|mess\\b|kind\\b|mix\\b|bundle\\b|step\\b|true\\b|firm\\b|tad\\b|better\\b|new user)(.+)$",
  ),
  pattern(
    'i (?:just |recently |finally |also )*(?:grew up|moved (?:from|here|out)|graduated|majored|got (?:promoted|hired|a (?:new )?(?:job|dog|cat|puppy|kitten|promotion|tattoo))|lost my|quit my|started (?:a|my|working|learning)|adopted|signed up|enrolled|own|drive (?:a|an)|retired|served|founded|co-founded|opened (?:a|my)) ?(.*)$',
  ),
  pattern(
    `(?:i|we)(?:'ve| have) (?:got )?(?:a |an |one |two |three |four |five |\\d+ )(?:[\\w-]+ ){0,2}?${things}\\b ?(.*)$`,
  ),
  pattern(
    "(?:i|we)(?:'ve| have) been (?:\\w+ing|married|together|friends|a|an|in|at|with) .*\\b(?:for|since) (?:(?:over|about|almost|nearly|around|more than|at least) )*(?:\\d|a (?:year|month|week|decade|few|couple)|the (?:past|last)|(?:two|three|four|five|six|seven|eight|nine|ten|many|several|some) (?:year|month|week|day|decade)|i\\b|my|last|childhood|college|high school)(.*)$",
  ),
]

/** An offer, which is outdated with the decision. */
const availability = / (?:is|are|was|were) (?:still |only |also |not )*(?:free|available|busy|fully booked|sold out) /i

/** Subjects of an event on a date. */
const eventSubject = pattern(
  "(?:i|i'm|i've|i'll|we|we're|we've|we'll|my|our|the|\\w+ and i) (?!(?:was |am |also |just |kinda )*(?:wondering|not sure|curious|unsure|asking|trying to figure|need|want|wonder|thinking|considering|were thinking|are thinking|might|may|could|hoping|debating)\\b)",
)
const criticalPattern =
  /\b(?:critical|crucial|vital|essential|life-threatening|allergic|never forget|very important|most important)\b/i

/** A sentence that refers to the one before. */
const backReference = /^[\s.!;,]{0,9}(?:this|that|it)\b[^.!?\n]{0,80}/i

/**
 * Finds other facts about the user in English: key findings, personal facts and dated events. They fill no slot.
 * `after` is the text that follows: `This is critical.` refers to the clause before it.
 */
export function findPersonalFact(clause: Clause, after: string): TextFact | undefined {
  const marked = markedFact(clause)
  const value = marked ?? (isPersonalFact(clause.folded) ? trimPhrase(clause.text) : undefined)
  if (value === undefined || contentWords(value).length < 1 || !/\s/.test(value)) return undefined
  const importance = isCritical(clause, after) ? 9 : marked === undefined ? 6 : 7
  return rawFact(clause, value, importance)
}

/** True if a clause or the sentence after it says that it is critical. */
export const isCritical = ({ folded }: Clause, after: string): boolean =>
  criticalPattern.test(folded) || criticalPattern.test(backReference.exec(after)?.[0] ?? '')

/** Fact without a slot. */
export const rawFact = ({ start, end }: Clause, value: string, importance: number): TextFact => ({
  field: 'important_facts',
  key: '',
  value: truncateValue(value),
  importance,
  from: start,
  to: end,
})

function markedFact({ text, folded }: Clause): string | undefined {
  for (const marked of markedFacts) {
    const value = marked.exec(folded)?.[1]
    if (value !== undefined) return trimPhrase(text.slice(text.length - value.length))
  }
  return undefined
}

function isPersonalFact(folded: string): boolean {
  if (personalFacts.some((personalFact) => personalFact.test(folded))) return contentWords(folded).length >= 2
  return (
    eventSubject.test(folded) &&
    !availability.test(folded) &&
    datePattern.test(folded) &&
    contentWords(folded).length >= 3
  )
}
