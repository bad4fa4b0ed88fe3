import type { Clause } from './clauses.ts'
import type { Noted } from './found.ts'
import { bounded, keyFrom, tidy } from './wording.ts'

const pattern = (source: string): RegExp => new RegExp(`^${source}`, 'i')

const forbids = pattern(
  "((?:(?:we|you|i|it|this|the \\w+) (?:must|should|shall|can|may) (?:never|not)|(?:we|you) (?:mustn't|shouldn't)|we (?:can't|cannot)|never|don't(?: ever)?|do not(?: ever)?|must not|avoid|refrain from) (.+))$",
)
/** Begins what only sounds like a rule: small talk, or a report with the subject left out. */
const smallTalk =
  /^(?:worry|mind|know|think|thought|knew|forget|hesitate|get me|get it|you|want|have|had|has|see|seen|heard|hear|understand|remember|need|be|quit|miss|stress|panic|apologi[sz]e|settle|underestimate|saw|came|went|made|took|gave|found|told|said|sweat|bother|hold|give up|let|ask|tell|been|again|too|really|ever|stop|a|an|the|in|before|got|felt|did|liked?|lose|miss out|even|gets?|fails?|is|was|wait|feel|care|believe|expect|blame|say|help)\b|^\w{2,20}ed\b/i
/** Only with a verb that asks for something: `always calm` and `always good to hear` are no rules. */
const demands = pattern(
  '((?:(?:we|you) (?:must|should) )?always ((?:use|include|write|add|run|answer|reply|respond|ask|check|test|cite|explain|give|show|keep|make|start|end|provide|put|format|return|follow|mention|confirm|verify|validate|commit|document|name|sort|wrap|handle|log|prioriti[sz]e|avoid|consider|suggest|list|call|address|set|send|tell|treat|specify|state|highlight|offer|focus|ensure|round|convert|translate|link|quote|note|remind|recommend|default|prefer|review|back up|store|close|encrypt|escape)\\b.+))$',
)

/**
 * A rule for what is done: `never deploy on Fridays`, `always run the tests`. Rules are custom fields whose key begins with
 * `constraints.`, one for each matter, so that `always …` takes the place of `never …` and no rule drives out another.
 */
export function constraintIn({ text, start, end }: Clause): Noted | undefined {
  const [, said = '', matter = ''] = forbids.exec(text) ?? demands.exec(text) ?? []
  if (matter === '' || smallTalk.test(matter)) return undefined
  const key = constraintKey(matter)
  return key === undefined
    ? undefined
    : { field: 'custom_fields', key, value: bounded(tidy(said)), importance: 9, from: start, to: end }
}

/** What stands before the matter of every rule among the custom fields. */
export const constraints = 'constraints'

/** The key of the rule about a matter. */
export function constraintKey(matter: string): string | undefined {
  const name = keyFrom(matter.replace(/\b(?:never|always|don't|do not|must not|must|avoid|use|using|ever)\b/gi, ' '), 4)
  return name === '' ? undefined : `${constraints}.${name}`
}

const decisions: readonly RegExp[] = [
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
/** It or that is decided on: without what was said before, nothing. */
const decidesNothing = /\b(?:it|that|this|them|those|these|you|something|one|happen)$|\b(?:for it|this \w+)\b/i

/** What a clause decides, in its own words. */
export function decisionIn({ text, start, end }: Clause): Noted | undefined {
  const said = tidy(text)
  if (!decisions.some((decision) => decision.test(text)) || decidesNothing.test(said)) return undefined
  return { field: 'key_decisions', key: '', value: bounded(said), importance: 8, from: start, to: end }
}
