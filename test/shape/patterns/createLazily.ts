import { highlightTerms } from '../../../inspector/src/views/search/highlightTerms.ts'
import { describeLineChanges, hashLines } from '../../../src/handoff/fileReferences.ts'
import { Router } from '../../../src/server/http/router.ts'
import { findSecrets } from '../../../src/text/secrets.ts'
import { statedClauses } from '../../../src/upkeep/extract/clauses.ts'
import { groundFacts } from '../../../src/upkeep/extract/ground.ts'
import { languages } from '../../../src/upkeep/extract/languages/languages.ts'
import { findPreference } from '../../../src/upkeep/extract/preferences.ts'
import { stripReminder } from '../../../src/upkeep/extract/reminders.ts'
import { isChange } from '../../../src/upkeep/extract/slots.ts'
import { findHabit } from '../../../src/upkeep/extract/statements.ts'

const sentence = { text: 'x', start: 0, end: 1 }
const clause = { ...sentence, folded: 'x', before: '' }
/** Sentences whose language is recognised: one for each language with rules. */
const sentences = [
  'I do not want that the buttons are green and I prefer the blue ones.',
  'Ich möchte nicht, dass die Knöpfe grün sind, und ich mag die blauen.',
  'Je ne veux pas que les boutons soient verts et je préfère les bleus.',
  'No quiero que los botones sean verdes y prefiero los azules para mí.',
  'Eu não quero que os botões sejam verdes e prefiro os azuis para mim.',
  'Ik wil niet dat de knoppen groen zijn en ik vind de blauwe het mooist.',
]

/** Calls the functions that create regular expressions on their first use, for everything these depend on. */
export function createLazily(): void {
  for (const rules of languages) {
    statedClauses(sentence, sentence.text, rules)
    findPreference(clause, rules)
    stripReminder(sentence, rules)
    isChange(clause, rules)
    findHabit(clause, rules)
  }
  for (const content of sentences)
    groundFacts({ user_preferences: { buttons: content } }, [{ id: '1', role: 'user', content, at: 0 }])
  for (const lineBreak of ['\n', '\\n', '\\\\n', '\\\\\\n', '\\\\\\\\n'])
    for (const delimiter of ['|', '│', lineBreak === '\n' ? '\t' : lineBreak.replace('n', 't'), ';', ','])
      findSecrets(['name', 'user', 'password'].join(delimiter) + lineBreak)
  new Router({ 'GET /v1/{key}/messages/{id}': undefined, 'GET /openapi.json': undefined })
  highlightTerms('', 'first second')
  describeLineChanges(hashLines('a'), 'b')
}
