import { expect, it } from 'vitest'
import { maskStoreUrl } from '../../src/domain/error.ts'
import { runSync } from '../../src/domain/work.ts'
import { rateLimitKey } from '../../src/server/auth/rateLimiter.ts'
import { messagesProtocol } from '../../src/server/protocols/messages.ts'
import { chars4 } from '../../src/text/estimators.ts'
import { findSecrets } from '../../src/text/secrets.ts'
import { extractFacts } from '../../src/upkeep/extract/extract.ts'
import { isCodeLine } from '../../src/upkeep/summarise/clauses.ts'
import { createValueFinder } from '../../src/upkeep/summarise/coverage.ts'
import { cleanModelText } from '../../src/upkeep/summarise/modelText.ts'
import { measureCpu } from './hostileTexts.ts'

const characters = 100_000
const userMessage = (content: string) => ({ id: 'm1', role: 'user' as const, content, at: 0 })

/** Texts that took from 3 seconds to minutes with patterns that tried many ways to divide them. */
const attacks: Readonly<Record<string, () => unknown>> = {
  'findSecrets › escaped line breaks after the start of a key': () =>
    findSecrets(`-----BEGIN PRIVATE KEY-----${'\\\\\\\\n'.repeat(20)}`),
  'extractFacts › many German durations': () => extractFacts([userMessage(`ich arbeite${' seit a'.repeat(100)} x`)]),
  'extractFacts › many Dutch durations': () => extractFacts([userMessage(`ik werk niet${' sinds a'.repeat(100)} x`)]),
  'parseRequest › many session marks in the id of the user': () =>
    messagesProtocol.parseRequest({ metadata: { user_id: `${'_session_a'.repeat(characters)}!` } }, chars4),
  'isCodeLine › one long word': () => isCodeLine(`${'a'.repeat(characters)};`),
  'createValueFinder › one long word before a digit': () =>
    runSync(createValueFinder('other'))(`${'a'.repeat(characters)}1`),
  'cleanModelText › dashes before a closing sentence': () =>
    cleanModelText(`It is late. ${'- '.repeat(characters / 2)}x. Let me know if you need more.`),
  'maskStoreUrl › slashes': () => maskStoreUrl(`x:${'/'.repeat(characters)}`),
  'rateLimitKey › percent signs before a line break': () => rateLimitKey(undefined, `:${'%'.repeat(characters)}\n`),
}

for (const [name, run] of Object.entries(attacks))
  it(`${name} › takes linear time`, () => expect(measureCpu(run)).toBeLessThan(2_000))
