import { describe, expect, it } from 'vitest'
import { findDifference } from './difference.ts'

const question = { role: 'user', content: 'Which files are here?' }
const answer = { role: 'assistant', content: [{ type: 'text', text: 'Two.' }] }
const system = { role: 'system', content: 'You are a coding agent.' }
const memory = { role: 'system', content: '<memory of="data">\nThe user is called Ann.\n</memory>' }
const sent = { model: 'a', messages: [system, question, answer] }
const forward = (...messages: readonly object[]) => findDifference(sent, { model: 'a', messages })

describe('difference of sent and forwarded requests', () => {
  it('of equal requests › is none', () => expect(forward(system, question, answer)).toBeUndefined())
  it('with a memory message at the end › is none', () => {
    expect(forward(system, question, answer, memory)).toBeUndefined()
    const parts = [{ type: 'text', text: memory.content }]
    expect(forward(system, question, answer, { role: 'user', content: parts })).toBeUndefined()
  })
  it('with memory elsewhere › is found', () => {
    expect(forward(system, memory, question, answer)).toBe('messages[1].role')
    expect(findDifference({ instructions: 'Code.' }, { instructions: 'Code.\nAnn.' })).toBe('instructions')
  })
  it('with a changed system text › is found', () => {
    expect(findDifference({ instructions: 'Code.' }, { instructions: 'Talk.' })).toBe('instructions')
    expect(findDifference({ system: [{ text: 'a' }, { text: 'b' }] }, { system: [{ text: 'b' }] })).toBe('system')
  })
  it('with a message in another form › is found', () =>
    expect(forward(system, question, { role: 'assistant', content: 'Two.' })).toBe('messages[2].content'))
  it('with a message too few or too many › is found', () => {
    expect(forward(system, question)).toBe('messages[2] is missing')
    expect(forward(system, question, answer, question)).toBe('messages has 1 more')
    expect(forward(system, answer, question, answer)).toBe('messages[1].role')
  })
  it('with another field › is found', () => {
    expect(findDifference({ store: true }, { store: false })).toBe('store')
    expect(findDifference({ input: [] }, { input: [], store: false })).toBe('store')
  })
})
