import type { Clause } from './clauses.ts'
import type { TextFact } from './fields.ts'
import type { LanguageRules } from './languages/language.ts'
import { isMarker } from './languages/languages.ts'
import { contentWords, foldText, trimPhrase, truncateValue } from './phrases.ts'
import { findTechnology } from './technologies.ts'

/** Relations of which people have several; their slots are named by the person. */
const manyRelations: ReadonlySet<string> = new Set(
  'sister brother son daughter child friend colleague doctor lawyer neighbour relative dog cat pet'.split(' '),
)

type SlotRules = {
  readonly owned: RegExp
  readonly labelled: RegExp
  readonly amount: RegExp
  readonly reschedule: RegExp
  readonly newOne: RegExp
  readonly changed: RegExp
  readonly attributes: readonly (readonly [attribute: string, pattern: RegExp])[]
  readonly relations: readonly (readonly [relation: string, pattern: RegExp])[]
  readonly vague: RegExp
  readonly fillers: RegExp
  readonly subject: RegExp
  readonly relative: RegExp
  readonly statements: readonly (readonly [attribute: string, pattern: RegExp])[]
  readonly change: RegExp
  readonly related: RegExp
}

const compiled = new Map<string, SlotRules>()

/** Compiles the slot patterns of a language on first use. */
function slotRules(rules: LanguageRules): SlotRules {
  const known = compiled.get(rules.code)
  if (known !== undefined) return known
  const {
    nounFirst,
    possessive,
    article,
    copula,
    attributes,
    relations,
    vagueNouns,
    fillers,
    subject,
    statements,
    change,
    reschedules,
    newOne,
  } = rules
  const relation = Object.values(relations).join('|')
  const start = nounFirst ? `^(?:(?:${fillers}) )*` : "(?:^|[\\s'-])"
  const compileNouns = (entries: Readonly<Record<string, string>>) =>
    Object.entries(entries).map(
      ([name, nouns]) => [name, new RegExp(`${start}(?:${nouns})(?:'s name)?(?=$|\\s)`, 'i')] as const,
    )
  const result: SlotRules = {
    owned: new RegExp(
      `^(?:(?:(?<own>${possessive})|(?<article>${article}))(?:\\s+|(?<=['\\s])))?(?<noun>(?:[\\w'/.-]{1,30} ){0,5}?[\\w'/.-]{1,30})(?:\\s+|(?='s))(?<copula>${copula}) (?<value>.+)$`,
      'id',
    ),
    labelled: new RegExp(
      `^(?:(?:here(?:'s| is)|voici|hier ist|aqui (?:esta|tienes)|hier is|segue|for|pour|fur|para|voor) )?(?:(?:${article})(?:\\s+|(?<=['\\s])))?(?:(?:${possessive})\\s+)?(?<noun>(?:[\\w'.-]{1,30} ){0,3}?[\\w'.-]{1,30})\\s?: (?<value>\\S.*)$`,
      'id',
    ),
    amount: new RegExp(`^(?:(?:${fillers}) )*(?<noun>(?:[\\w'-]{2,20} )?[\\w'-]{2,20}) (?<value>[$€£]?\\d.*)$`, 'ids'),
    reschedule: new RegExp(`^(?:${reschedules})`, 'i'),
    newOne: new RegExp(`^(?:${newOne}) (?<value>.+)$`, 'ids'),
    changed: new RegExp(
      `\\b(?:${possessive}|${article})(?:\\s+|(?<=['\\s]))(?<noun>(?:[\\w-]{2,20} ){0,2}?[\\w-]{2,20}) (?:(?:has|have|was|were|got|is|hat|wurde|ist|a|est|ha|fue|foi|werd|heeft) (?:been |sich |ete |sido )?)?(?:${change})\\b`,
      'i',
    ),
    attributes: compileNouns(attributes),
    relations: compileNouns(relations),
    vague: new RegExp(`^(?:(?:${fillers}) )*(?:${vagueNouns})(?:$|\\s)|\\s(?:${vagueNouns})$`, 'i'),
    fillers: new RegExp(`^(?:${fillers})$`, 'i'),
    subject: new RegExp(`^(?:${subject})`, 'i'),
    relative: new RegExp(
      `^(?:${possessive}|[\\w-]{2,20}'s) (?<relation>${relation})(?:\\s|,|(?='))\\s?(?:(?<who>[\\w'-]{2,20}),? )?`,
      'i',
    ),
    statements: statements.map(([attribute, pattern]) => [attribute, new RegExp(`^(?:${pattern})$`, 'ids')]),
    change: new RegExp(`\\b(?:${change})\\b`, 'i'),
    related: new RegExp(
      `\\b(?:${possessive}|an?) (?<relation>${relation})(?:'s name)?,? (?<who>[\\w'-]{2,20}(?: [\\w'-]{2,20})?)`,
      'dgi',
    ),
  }
  compiled.set(rules.code, result)
  return result
}

/** True if a clause or its lead-in says that it changes an earlier statement. */
export const isChange = ({ before, folded }: Clause, rules: LanguageRules): boolean =>
  slotRules(rules).change.test(`${before} ${folded}`)

const replacedTerm =
  /(?:instead of|rather than|replacing|(?:an)?statt|au lieu d(?:e |u |')|a la place d(?:e |u |')|en (?:vez|lugar) de|em vez d[eoa]|in plaats van|no longer(?: use| using| on| with)?|(?:switch|migrat|mov)(?:ed|ing) from|not(?= [^,]{1,30},? but))\s?(?:the |a |an |den |die |das |le |la |el |o |de |het )?([\w.+#][\w.+# -]{1,29}?)(?= to | but |[,.;]|$)/i

/** Returns the value that a clause says it replaces: `Postgres` in `use MySQL instead of Postgres`. */
export const findReplaced = ({ folded }: Clause): string | undefined => replacedTerm.exec(folded)?.[1]?.trim()

/** Fact about a slot, in the words of the clause. */
const slotFact = (clause: Clause, key: string, importance = 6): TextFact => ({
  field: 'important_facts',
  key,
  value: truncateValue(trimPhrase(clause.text)),
  importance,
  from: clause.start,
  to: clause.end,
})

const words = (text: string, rules: LanguageRules): readonly string[] =>
  contentWords(foldText(text).replace(/'s\b/g, '')).filter(
    (word) =>
      !isMarker(rules, word) &&
      !slotRules(rules).fillers.test(word) &&
      !/^(?:de|du|des|d|del|da|do|dos|das|van|von|der|den|la|le|los|las)$/.test(word),
  )

/** Value of a named group, in the words of the message. */
function groupText(clause: Clause, match: RegExpExecArray, name: string): string {
  const range = match.indices?.groups?.[name]
  return range === undefined ? '' : clause.text.slice(...range)
}

/** Temporary states, which are outdated with the next message. */
const transientState =
  /^(?:not |n't|now |still |also |so |very |really |too |pretty |quite |just |currently )*(?:working|failing|broken|running|slow|getting|going|giving|throwing|returning|showing|causing|taking|having|being|doing|trying|great|good|bad|fine|ok|okay|nice|awesome|amazing|cool|wrong|right|clear|done|ready|empty|missing|null|undefined|here|there|below|above|as follows|similar|different|important|hard|tough|easy|difficult|possible|that|how|what|why|when|where|whether|if|not)\b/i

const availability =
  /^(?:not |still |only |also |noch |nur |encore |todavia |ainda |nog )*(?:free|available|busy|fully booked|sold out|frei|verfugbar|ausgebucht|libres?|disponibles?|complete?s?|livres?|disponive(?:l|is)|vrij|beschikbaar|volgeboekt)\b/i

/** True if a value says when something is free: an offer, which is outdated with the decision. */
const isAvailability = (value: string): boolean => availability.test(foldText(value))

/** A code, path, address or number: letters with digits, or words joined by punctuation. */
const identifier = /\d[\w-]{0,60}[a-z]|[a-z][\w-]{0,60}\d|[\w~]\/[\w~]|[a-z]\.[a-z]{2}|@[\w-]/i
/** A value that is one code or number. */
const identifierOnly = /^["'`]?(?=[./:@#\w-]*\d)[\w./:@#-]+["'`]?[.!]?$/
const weekday =
  /\b(?:(?:mon|tues|wednes|thurs|fri|satur|sun)day|(?:mon|diens|donners|frei|sams|sonn)tag|mittwoch|lundi|mardi|mercredi|jeudi|vendredi|samedi|dimanche|lunes|martes|miercoles|jueves|viernes|sabado|domingo|segunda|terca|quarta|quinta|sexta|(?:maan|dins|woens|donder|vrij|zater|zon)dag|tomorrow|tonight|noon|midnight)\b/i

/** A password is no fact unless the user asks to remember it. */
const maskedSecret = /^⟨secret:/

/** True if a value has a name, a date, an amount or a code. */
const isDefinite = (value: string, { capitalsAreNames }: LanguageRules, isKnown: boolean): boolean =>
  !maskedSecret.test(value) &&
  (/\d/.test(value) ||
    identifier.test(value) ||
    weekday.test(foldText(value)) ||
    ((capitalsAreNames || isKnown) && /(?:^|[\s("“])\p{Lu}\p{L}/u.test(value)))

/** Finds `my order number is BK-20418`: an attribute of the user or of the project and its value. */
export function findOwned(clause: Clause, rules: LanguageRules): TextFact | undefined {
  const slots = slotRules(rules)
  const match = slots.owned.exec(clause.folded)
  if (match === null) return undefined
  const { own, article, noun = '' } = match.groups ?? {}
  const value = groupText(clause, match, 'value')
  const related = own === undefined ? undefined : relationKey(noun, value, slots)
  if (related !== undefined) return slotFact(clause, related, 7)
  const isVague = slots.vague.test(noun) && !(noun.includes(' ') && identifierOnly.test(value))
  const isTransient = transientState.test(value) && !/\d/.test(value)
  if ((isVague && !isDate(value)) || isTransient || isAvailability(value) || notNoun.test(noun)) return undefined
  const key = attributeKey(noun, value, rules)
  const isFree = key !== undefined && freeAttributes.has(key.replace(/\..*/, ''))
  if (!isFree && !isDefinite(value, rules, key !== undefined)) return undefined
  const isBare = own === undefined && article === undefined
  if (key !== undefined) return isBare && key.includes('.') ? undefined : slotFact(clause, key, 7)
  const name = words(noun, rules)
  const isOwn = own !== undefined
  // `The …` may be anything: its value must be a code or a date.
  const isSure = isOwn || (article !== undefined && name.length <= 3 && (identifier.test(value) || isDate(value)))
  return name.length > 0 && isSure ? slotFact(clause, name.slice(-3).join('_')) : undefined
}

/** Words that show that the text before the verb is more than a noun, or about somebody else. */
const notNoun =
  /^(?:it|that|this|which|what|there|here|his|her|their|your|its|sein|seine|ihr|ihre|son|sa|ses|leur|su|sus|seu|sua|zijn|haar|hun)\b|\b(?:should|shall|must|have|has|had|will|would|can|that|which|who|i|you|we|he|she|they|when|if)\b/i

/** Attributes whose value may be any phrase. */
const freeAttributes: ReadonlySet<string> = new Set(['topic', 'goal', 'job'])

const monthName =
  '(?:jan|feb|fev|mar|mrz|apr|abr|avr|may|mai|mei|jun|juin|jul|juil|aug|aou|ago|sep|set|oct|okt|out|nov|dec|dez|dic|ene)[a-z]{0,7}'
const datePattern = new RegExp(
  `\\b\\d{1,2}(?:st|nd|rd|th|\\.|er)?(?: of| de)? ${monthName}\\b|\\b${monthName}\\.? \\d|\\b\\d{4}-\\d\\d|\\b\\d{1,2}:\\d\\d\\b`,
  'i',
)
const isDate = (value: string): boolean => datePattern.test(foldText(value)) || weekday.test(foldText(value))

/** Finds a change of an attribute: `we moved the meeting to Thursday`, or `my number changed, the new one is …`. */
export function findRevision(clause: Clause, rules: LanguageRules): TextFact | undefined {
  const slots = slotRules(rules)
  const moved = slots.reschedule.exec(clause.folded)?.groups?.noun
  const key =
    moved === undefined ? undefined : (attributeKey(moved, '', rules) ?? words(moved, rules).slice(0, 2).join('_'))
  if (key !== undefined && key !== '') return slotFact(clause, key, 7)
  const match = slots.newOne.exec(clause.folded)
  if (match === null || !/\d/.test(match.groups?.value ?? '')) return undefined
  const noun = slots.changed.exec(clause.before)?.groups?.noun
  if (noun === undefined) return undefined
  const slot = attributeKey(noun, match.groups?.value ?? '', rules) ?? words(noun, rules).slice(-3).join('_')
  return slot === '' ? undefined : slotFact(clause, slot, 7)
}

/** Finds `Order number: BK-20418` and `Budget 500 euros`, for known attributes. */
export function findLabelled(clause: Clause, rules: LanguageRules): TextFact | undefined {
  const slots = slotRules(rules)
  const match = slots.labelled.exec(clause.folded) ?? slots.amount.exec(clause.folded)
  if (match === null) return undefined
  const value = groupText(clause, match, 'value')
  const key = attributeKey(match.groups?.noun ?? '', value, rules)
  return key !== undefined && isDefinite(value, rules, true) ? slotFact(clause, key, 7) : undefined
}

/** Derives the slot of a noun phrase such as `new phone number` or `deadline for the report`. */
function attributeKey(noun: string, value: string, rules: LanguageRules): string | undefined {
  let best: { readonly attribute: string; readonly match: string } | undefined
  for (const [attribute, pattern] of slotRules(rules).attributes) {
    const match = pattern.exec(noun)?.[0]
    if (match !== undefined && match.length > (best?.match.length ?? 0)) best = { attribute, match }
  }
  if (best === undefined) return undefined
  const rest = noun.replace(best.match, ' ').trim()
  const isNumberAlone =
    best.attribute === 'phone' &&
    /(?:number|nummer|numero)\s*$/i.test(best.match) &&
    !/phone|mobile|cell|tele|handy|mobil|portable|movil|celular|gsm/i.test(best.match)
  // A number of something else: `my badge number`.
  if (isNumberAlone && (words(rest, rules).length > 0 || (value.match(/\d/g)?.length ?? 0) < 6)) return undefined
  const qualifier = words(rest, rules).slice(0, 2).join('_')
  return qualifier === '' ? best.attribute : `${best.attribute}.${qualifier}`
}

/** Derives the slot of a relation if the value is a name. */
function relationKey(noun: string, value: string, { relations }: SlotRules): string | undefined {
  const named =
    /^(?:[\p{Ll}.]{1,12} ){0,2}(?:Dr\.? |Prof\.? |Mr\.? |Ms\.? |Mrs\.? )?["“']?(\p{Lu}[\p{L}'’-]+)(?!['’]s)/u.exec(
      value,
    )?.[1]
  if (named === undefined) return undefined
  for (const [relation, pattern] of relations) {
    const match = pattern.exec(noun)
    if (match !== null && match.index + match[0].length === noun.length)
      return manyRelations.has(relation) ? `${relation}.${foldText(named).toLowerCase()}` : relation
  }
  return undefined
}

/** Slots whose value must be a name or a described place, not an activity. */
const placeSlots: ReadonlySet<string> = new Set(['home', 'employer', 'origin'])
const isPlace = (value: string): boolean =>
  findTechnology(foldText(value.slice(0, 40))) === undefined &&
  (/^(?:\S+ ){0,2}["“]?\p{Lu}/u.test(value) || /^(?:an? |eine[rmn]? |une? |una? |uma |um |een )/i.test(value))

/** Finds statements about the user or a relative: `I live in Oslo`, `my wife is allergic to nuts`. */
export function findStatement(clause: Clause, rules: LanguageRules): TextFact | undefined {
  const slots = slotRules(rules)
  for (const { length, who, isNamed } of findSubjects(clause, slots))
    for (const [attribute, pattern] of slots.statements) {
      const match = pattern.exec(clause.folded.slice(length))
      const range = match?.indices?.slice(1).findLast((group) => group !== undefined)
      if (range === undefined) continue
      const value = trimPhrase(clause.text.slice(length + range[0], length + range[1]))
      const base = attribute.replace(/\.\*$/, '')
      if ((placeSlots.has(attribute) && !isPlace(value)) || (isNamed && !personalSlots.has(base))) continue
      const item = attribute === base ? '' : valueKey(value, rules)
      return slotFact(clause, [who, base, item].filter((part) => part !== '').join('.'), healthSlots.has(base) ? 9 : 6)
    }
  return undefined
}

type Subject = { readonly length: number; readonly who: string; readonly isNamed?: true }

/** Finds the possible subjects of a clause: the user, or a relative with or without a name. */
function findSubjects({ folded, text }: Clause, slots: SlotRules): readonly Subject[] {
  const own = slots.subject.exec(folded)
  if (own !== null && (own[0] !== '' || !slots.relative.test(folded))) {
    const named = own[0] === '' ? findNamedSubject(folded, text) : []
    return [{ length: own[0].length, who: '' }, ...named]
  }
  const match = slots.relative.exec(folded)
  const { relation, who = '' } = match?.groups ?? {}
  if (match === null || relation === undefined) return findNamedSubject(folded, text)
  const name = slots.relations.find(([, pattern]) => pattern.test(relation))?.[0] ?? ''
  const named = manyRelations.has(name) && who !== '' ? `${name}_${who.toLowerCase()}` : name
  const unnamed = {
    length: match[0].length - (who === '' ? 0 : match[0].length - match[0].lastIndexOf(who)),
    who: name,
  }
  return who === '' ? [unnamed] : [unnamed, { length: match[0].length, who: named }]
}

/** A name, also after a topic and before what the person told about himself or herself. */
const namedSubject =
  /^(?:[Ff]or (?:the )?[\p{L} ]{2,30}: )?(?:ist )?(\p{Lu}\p{Ll}{2,20})(?: (?:told (?:me|us)|says|said|mentioned)(?: that)? (?:she|he))?(?: |(?=['’]))/u

/** Finds a person by name at the start of a clause: `Hanna is allergic to nuts`, `Hanna told me she's gone vegan`. */
function findNamedSubject(folded: string, text: string): readonly Subject[] {
  const [whole = '', name = ''] = namedSubject.exec(text) ?? []
  return name === ''
    ? []
    : [
        {
          length: whole.length,
          who: folded.slice(whole.indexOf(name), whole.indexOf(name) + name.length).toLowerCase(),
          isNamed: true,
        },
      ]
}

/** Slots that are kept for other people too. */
const personalSlots: ReadonlySet<string> = new Set(['allergy', 'medication', 'condition', 'diet'])

const healthSlots: ReadonlySet<string> = new Set(['allergy', 'medication', 'condition'])

const dose =
  /\d[\d.,]*|\b(?:mg|mcg|ml|units?|pills?|tablets?|daily|every|day|night|morning|tabletten?|comprimes?|comprimidos?|pastillas?|allergie|allergy)\b/gi

/** Names a value of an attribute that has several: `sertraline` for `50 mg of sertraline daily`. */
const valueKey = (value: string, rules: LanguageRules): string => {
  const [first = '', second = ''] = words(value.replace(dose, ' '), rules)
  return first.length < 4 && second !== '' ? `${first}_${second}` : first.replace(/allergie$/, '')
}

const pair =
  /(?<![\w-])(listen(?:s|ing)? on port|port|host(?:name)?|server|database|db|schema|user(?:name)?|region|bucket|namespace|branch|cluster|queue|topic|endpoint|container|ip(?: address)?|timeout|version|commit|instance|pod|channel|flight|room|vlan|puerto|servidor|serveur|poort|porta)(?: (?:number|name|id|is|no\.?|ist|est|es|e))*(?::|=|#| )\s?["'`]?((?=[\w./:@-]{0,60}\d)[\w/][\w./:@-]{0,60}[\w]|\d+)/gi
const environmentValue = /(?<![\w$])([A-Z][A-Z0-9_]{2,40})=["']?([^\s"',;]{1,80})/g

/** Finds technical values without a verb: `port 5433, host db-prod-2`. */
export function findPairs(clause: Clause): readonly TextFact[] {
  const facts: TextFact[] = []
  const add = (key: string, from: number, length: number): void => {
    const value = clause.text.slice(from, from + length)
    facts.push({
      field: 'important_facts',
      key,
      value,
      importance: 6,
      from: clause.start + from,
      to: clause.start + from + length,
    })
  }
  for (const { 0: whole, 1: name = '', index } of clause.folded.matchAll(pair))
    add(pairSlots[name.toLowerCase()] ?? name.toLowerCase().replace(/\W+/g, '_'), index, whole.length)
  for (const { 0: whole, 1: name = '', index } of clause.text.matchAll(environmentValue))
    add(`environment.${name.toLowerCase()}`, index, whole.length)
  return facts
}

const attendance =
  /(?:^|: )(?:all |about |around |only |exactly )*\d{1,5} (?:people|guests|persons|attendees|participants|leute|gaste|personen|personnes|invites|personas|invitados|pessoas|convidados|mensen|gasten) (?:(?:are|will be) (?:coming|attending|joining|there)|have (?:confirmed|said yes)|kommen|haben zugesagt|viennent|vont venir|vienen|vendran|vem|virao|komen)\b/i
const workingTitle =
  /\b(?:working title|code ?named?|arbeitstitel|nom de code|titulo provisional|nome de codigo|werktitel):? ["“«]?(?=\p{Lu})[\p{L}\p{N}-]{2,30}/iu

/** Finds the number of people who come, and the working title of a project: `a booking app, working title Cragbook`. */
export function findCountOrTitle(clause: Clause): TextFact | undefined {
  if (attendance.test(clause.folded)) return slotFact(clause, 'guests', 7)
  const title = workingTitle.exec(clause.folded)
  return title !== null && /\p{Lu}\S*$/u.test(title[0]) ? slotFact(clause, 'project') : undefined
}

const pairSlots: Readonly<Record<string, string>> = {
  hostname: 'host',
  'listens on port': 'listening_port',
  'listening on port': 'listening_port',
  'listen on port': 'listening_port',
  server: 'host',
  servidor: 'host',
  serveur: 'host',
  puerto: 'port',
  poort: 'port',
  porta: 'port',
  database: 'database_name',
  db: 'database_name',
  user: 'username',
}

const contactVerb =
  /\b(?:reach|contact|e-?mail|mail|write|call|text|phone|ring|message|send|erreich\w{0,4}|schreib\w{0,3}|ruf\w{0,3}|joindre|contacte\w{0,3}|appele\w{0,3}|ecri\w{0,5}|escrib\w{0,5}|llam\w{0,4}|contact\w{0,5}|escrev\w{0,3}|lig\w{0,3}|bereik\w{0,4}|bel|stuur|envia\w{0,3}|envoie\w{0,2}|schick\w{0,3})\b.{0,20}\b(?:me|us|mich|mir|uns|moi|nous|nos|mij|ons|it)\b|\bje\w{0,2} .{0,10}\bjoindre\b/i
const emailAddress = /[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,4}/
const phoneNumber = /(?<![\w.])\+?\d[\d ()/.-]{5,18}\d(?!\w)/

/** Finds an address in a request to be contacted: `reach me at ann@example.org`. */
export function findContact(clause: Clause): TextFact | undefined {
  if (!contactVerb.test(clause.folded)) return undefined
  if (emailAddress.test(clause.folded)) return slotFact(clause, 'email', 7)
  const digits = phoneNumber.exec(clause.folded)?.[0].replace(/\D/g, '').length ?? 0
  return digits >= 7 ? slotFact(clause, 'phone', 7) : undefined
}

/** Finds people and animals named in passing: `my wife Ana`, `a friend, Bo, who paints`. `after` follows the clause. */
export function findRelatives(clause: Clause, rules: LanguageRules, after: string): readonly TextFact[] {
  const slots = slotRules(rules)
  const facts: TextFact[] = []
  for (const match of clause.folded.matchAll(slots.related)) {
    const { relation = '' } = match.groups ?? {}
    const [from, limit] = match.indices?.groups?.who ?? [0, 0]
    const [who = ''] = /^\p{Lu}[\p{L}-]+(?: \p{Lu}[\p{L}-]+)?/u.exec(clause.text.slice(from, limit)) ?? []
    const text = clause.text + after
    const role = /^,? who [^,.;:!?()\n]{3,60}(?=[,.;!\n]|$)/.exec(text.slice(from + who.length))?.[0] ?? ''
    const to = from + who.length + role.length
    const name = slots.relations.find(([, pattern]) => pattern.test(relation))?.[0]
    if (name === undefined || who === '') continue
    const start = clause.start + match.index
    facts.push({
      field: 'important_facts',
      key: manyRelations.has(name) ? `${name}.${foldText(who).toLowerCase().replace(/ .*/, '')}` : name,
      value: text.slice(match.index, to),
      importance: 6,
      from: start,
      to: clause.start + to,
    })
  }
  return facts
}
