import { beforeEach, describe, expect, it } from 'vitest'
import { openMemory, ramStore } from '../../src/index.ts'
import { chars4 } from '../../src/text/estimators.ts'
import { type Journal, type JournalLine, parseJournal } from './journal.ts'
import { importedSuffix, messageText, type Operation, rowSession } from './operations.ts'
import { findOtherViolations } from './otherViolations.ts'
import { type OpenStore, runOperation, scopeOfRows } from './runOperation.ts'
import { readStoredRows, readStoredSessions } from './storedSessions.ts'
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

const otherViolations = async (...lines: readonly JournalLine[]): Promise<readonly string[]> =>
  findOtherViolations(journalFrom(...lines), await readStoredSessions(opened), await readStoredRows(opened))
const replace = (id: string): Operation => ({ kind: 'replace', id, session, message: 'm2', target: 'ann-0', index: 1 })
const putRow = (id: string): Operation => ({ kind: 'putRow', id, session: rowSession, row: 'ann 0' })
const bundle: Operation = { kind: 'import', id: 'ann-1', session: 'imported:ann-1' }

describe('findOtherViolations', () => {
  it('with a correct store, also with unacknowledged operations › finds nothing', async () => {
    const lines: JournalLine[] = []
    for (const operation of [append('ann-0'), replace('ann-2'), replace('ann-3'), putRow('ann-4'), bundle])
      lines.push(...(await acknowledge(operation)))
    expect(await otherViolations(...lines)).toEqual([])
    expect(await violations(...lines)).toEqual([])
    expect(await otherViolations(...lines, { requested: replace('ann-5') }, { requested: putRow('ann-6') })).toEqual([])
  })

  it('with a replaced message › finds former and older texts, and damaged ones', async () => {
    const lines = [...(await acknowledge(append('ann-0'))), { requested: replace('ann-2') }]
    expect(await otherViolations(...lines)).toEqual([])
    const acknowledged = { acknowledged: 'ann-2', positions: [] }
    expect((await otherViolations(...lines, acknowledged)).join()).toMatch(/m2 is not as it was replaced: "ann-0#1/)
    await runOperation(opened, replace('ann-2'))
    const next = [...lines, acknowledged, { requested: replace('ann-3') }, { acknowledged: 'ann-3', positions: [] }]
    expect((await otherViolations(...next)).join()).toMatch(/m2 is not as it was replaced: "ann-2 replaces/)
    await opened.memory.replace(session, 'm2', { role: 'assistant', content: 'ann-3 replaces ann-0#1 …' })
    expect(await otherViolations(...next)).toHaveLength(1)
    expect((await violations(...next)).join()).toMatch(/m2 belongs to no operation/)
  })

  it('with rows › finds lost, older and unknown ones', async () => {
    const lines = [{ requested: putRow('ann-4') }, { acknowledged: 'ann-4', positions: [] }]
    expect(await otherViolations(...lines)).toEqual(['row ann 0 is not as it was written: 0 values, undefined'])
    const later = [...(await acknowledge(putRow('ann-4'))), { requested: putRow('ann-5') }]
    expect(await otherViolations(...later)).toEqual([])
    expect(await otherViolations(...later, { acknowledged: 'ann-5', positions: [] })).toHaveLength(1)
    await opened.memory.table(scopeOfRows).put(['rows'], 'bob 0', { text: '' })
    expect(await otherViolations(...later)).toEqual(['row bob 0 was never written'])
  })

  it('with imports › finds lost, partial, repeated and unknown sessions', async () => {
    const lines = await acknowledge(bundle)
    expect(await otherViolations()).toHaveLength(2)
    await opened.memory.forget({ key: bundle.session })
    expect(await otherViolations(...lines)).toEqual(['imported:ann-1 is not as it was imported: 0 messages'])
    expect(await otherViolations({ requested: bundle })).toEqual([])
    const other = `${bundle.session}${importedSuffix}`
    await opened.memory.append(other, userMessages(messageText(`ann-1${importedSuffix}`, 2)))
    expect(await otherViolations({ requested: bundle })).toEqual([`${other} is not as it was imported: 4 messages`])
    await opened.memory.forget({ key: other, messageId: 'm4' })
    await opened.memory.forget({ key: other, messageId: 'm3' })
    expect(await otherViolations({ requested: bundle })).toEqual([])
    expect(await otherViolations(...lines)).toContain(`${other} is not as it was imported: 2 messages`)
  })
})
