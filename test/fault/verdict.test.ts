import { beforeEach, describe, expect, it } from 'vitest'
import { openMemory, ramStore } from '../../src/index.ts'
import { chars4 } from '../../src/text/estimators.ts'
import { type Journal, journalOf, type Line } from './journal.ts'
import { keptIn } from './kept.ts'
import { type Operation, textOf } from './operations.ts'
import { type Opened, perform } from './perform.ts'
import { faultsIn } from './verdict.ts'

const session = 'fault:own-ann'
const say = (id: string, learns = false): Operation => ({ does: 'say', id, session, messages: 2, learns })
const forget: Operation = { does: 'forget', id: 'ann-9', session }
const said = (...contents: readonly string[]) => contents.map((content) => ({ role: 'user' as const, content }))

/** A store that keeps its promises, for journals that tell of other things than happened. */
let opened: Opened
beforeEach(async () => {
  const store = ramStore()
  opened = { store, memory: await openMemory({ store, tokenizer: chars4 }) }
})

const told = (...lines: readonly Line[]): Journal =>
  journalOf(lines.map((line) => `${JSON.stringify(line)}\n`).join(''))
const done = async (operation: Operation): Promise<readonly Line[]> => [
  { asked: operation },
  { done: operation.id, places: await perform(opened, operation) },
]
const faults = async (...lines: readonly Line[]): Promise<readonly string[]> =>
  faultsIn(told(...lines), await keptIn(opened))

describe('the verdict', () => {
  it('finds nothing in a store that did what it told', async () => {
    const lines = [...(await done(say('ann-0'))), ...(await done(say('ann-1', true)))]
    expect(await faults(...lines, { asked: say('ann-2') })).toEqual([])
    expect(await faults(...lines, ...(await done(forget)))).toEqual([])
  })

  it('finds what was acknowledged and is lost', async () => {
    const places = await perform(opened, say('ann-0'))
    await opened.memory.forget({ key: session })
    expect(await faults({ asked: say('ann-0') }, { done: 'ann-0', places })).toEqual([
      `${session}: ann-0#0 was acknowledged and is lost`,
      `${session}: ann-0#1 was acknowledged and is lost`,
    ])
  })

  it('finds what is kept twice', async () => {
    const lines = await done(say('ann-0'))
    await opened.memory.append(session, said(textOf('ann-0', 0), textOf('ann-0', 1)))
    expect(await faults(...lines)).toContain(`${session}: ann-0#1 is kept twice, as m2 and m4`)
  })

  it('finds what is half-written', async () => {
    await opened.memory.append(session, said(textOf('ann-0', 0)))
    expect(await faults({ asked: say('ann-0') })).toEqual([`${session}: ann-0 is half-written: 1 of 2 messages`])
  })

  it('finds messages without the fact that came with them', async () => {
    await opened.memory.append(session, said(textOf('ann-0', 0), textOf('ann-0', 1)))
    expect(await faults({ asked: say('ann-0', true) })).toEqual([
      `${session}: ann-0 is half-written: its messages are kept and its fact is undefined`,
    ])
  })

  it('finds what was forgotten and what nobody said', async () => {
    const lines = [...(await done(say('ann-0'))), { asked: forget }, { done: forget.id, places: [] }]
    expect(await faults(...lines)).toContain(`${session}: ann-0 is kept, but was forgotten or never asked for`)
    await opened.memory.append(session, said('Who said this?'))
    expect(await faults(...lines)).toContain(`${session}: m3 is nothing anybody said: "Who said this?"`)
  })

  it('finds two acknowledgements that differ', async () => {
    const lines = await done(say('ann-0'))
    expect(await faults(...lines, { done: 'ann-0', places: [] })).toEqual([
      `${session}: ann-0 was acknowledged with different places`,
    ])
  })
})
