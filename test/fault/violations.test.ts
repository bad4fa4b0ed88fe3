import { beforeEach, describe, expect, it } from 'vitest'
import { openMemory, ramStore } from '../../src/index.ts'
import { chars4 } from '../../src/text/estimators.ts'
import { type Journal, type JournalLine, parseJournal } from './journal.ts'
import { messageText, type Operation } from './operations.ts'
import { type OpenStore, runOperation } from './runOperation.ts'
import { readStoredSessions } from './storedSessions.ts'
import { findViolations } from './violations.ts'

const session = 'fault:own-ann'
const append = (id: string, withFact = false): Operation => ({ kind: 'append', id, session, messages: 2, withFact })
const eraseSession: Operation = { kind: 'eraseSession', id: 'ann-9', session }
const userMessages = (...contents: readonly string[]) => contents.map((content) => ({ role: 'user' as const, content }))

/** A correct store, to be compared with incorrect journals. */
let opened: OpenStore
beforeEach(async () => {
  const store = ramStore()
  opened = { store, memory: await openMemory({ store, tokenizer: chars4 }) }
})

const journalFrom = (...lines: readonly JournalLine[]): Journal =>
  parseJournal(lines.map((line) => `${JSON.stringify(line)}\n`).join(''))
const acknowledge = async (operation: Operation): Promise<readonly JournalLine[]> => [
  { requested: operation },
  { acknowledged: operation.id, positions: await runOperation(opened, operation) },
]
const violations = async (...lines: readonly JournalLine[]): Promise<readonly string[]> =>
  findViolations(journalFrom(...lines), await readStoredSessions(opened))

describe('findViolations', () => {
  it('with a correct store finds nothing', async () => {
    const lines = [...(await acknowledge(append('ann-0'))), ...(await acknowledge(append('ann-1', true)))]
    expect(await violations(...lines, { requested: append('ann-2') })).toEqual([])
    expect(await violations(...lines, ...(await acknowledge(eraseSession)))).toEqual([])
  })

  it('finds acknowledged messages that are lost', async () => {
    const positions = await runOperation(opened, append('ann-0'))
    await opened.memory.forget({ key: session })
    expect(await violations({ requested: append('ann-0') }, { acknowledged: 'ann-0', positions })).toEqual([
      `${session}: ann-0#0 was acknowledged and is lost`,
      `${session}: ann-0#1 was acknowledged and is lost`,
    ])
  })

  it('finds messages stored twice', async () => {
    const lines = await acknowledge(append('ann-0'))
    await opened.memory.append(session, userMessages(messageText('ann-0', 0), messageText('ann-0', 1)))
    expect(await violations(...lines)).toContain(`${session}: ann-0#1 is stored twice, as m2 and m4`)
  })

  it('finds partially stored appends', async () => {
    await opened.memory.append(session, userMessages(messageText('ann-0', 0)))
    expect(await violations({ requested: append('ann-0') })).toEqual([
      `${session}: ann-0 is partially stored: 1 of 2 messages`,
    ])
  })

  it('finds messages without the fact of their commit', async () => {
    await opened.memory.append(session, userMessages(messageText('ann-0', 0), messageText('ann-0', 1)))
    expect(await violations({ requested: append('ann-0', true) })).toEqual([
      `${session}: ann-0 is partially stored: its messages are stored and its fact is undefined`,
    ])
  })

  it('finds erased messages and messages without an operation', async () => {
    const lines = [
      ...(await acknowledge(append('ann-0'))),
      { requested: eraseSession },
      { acknowledged: eraseSession.id, positions: [] },
    ]
    expect(await violations(...lines)).toContain(`${session}: ann-0 is stored, but was erased or never requested`)
    await opened.memory.append(session, userMessages('Who said this?'))
    expect(await violations(...lines)).toContain(`${session}: m3 belongs to no operation: "Who said this?"`)
  })

  it('finds acknowledgements that differ', async () => {
    const lines = await acknowledge(append('ann-0'))
    expect(await violations(...lines, { acknowledged: 'ann-0', positions: [] })).toEqual([
      `${session}: ann-0 was acknowledged with different positions`,
    ])
  })
})
