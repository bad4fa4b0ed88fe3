import type { MessageInput } from '../../src/domain/chat.ts'
import type { Memory } from '../../src/memory.ts'

const subjects = [
  'kitchen',
  'garden',
  'boiler',
  'library',
  'attic',
  'harbour',
  'workshop',
  'orchard',
  'cellar',
  'stable',
  'chapel',
]
const actions = [
  'painted before the winter',
  'measured again by two people',
  'cleared of everything that is broken',
  'shown to the neighbours first',
  'kept as it was found',
]
const reasons = [
  'the rain comes in from the west side',
  'the old beams have begun to bend',
  'visitors keep asking for it',
  'the insurance wants to see pictures',
  'nobody has a key any more',
]

/**
 * The nth turn of an endless conversation: about 80 tokens per side, all different, with nothing a summary must keep.
 */
export function sampleTurn(turn: number): readonly [MessageInput, MessageInput] {
  const pick = (words: readonly string[], step: number): string => words[(turn * step + step) % words.length] as string
  const [subject, doing, reason] = [pick(subjects, 1), pick(actions, 2), pick(reasons, 3)]
  const more = `${pick(subjects, 4)} ${pick(actions, 3)}`
  return [
    {
      role: 'user',
      content: `Point ${turn}: the ${subject} could be ${doing}, since ${reason}, and it would be good to hear what that takes in hours and in material. My cousin thinks that the ${more} is a better idea, because there is more light in there and ${pick(reasons, 2)}, but that is a question of taste as much as of money, and so I ask.`,
    },
    {
      role: 'assistant',
      content: `On point ${turn}: it takes two people and a dry week to have the ${subject} ${doing}, and somewhat longer while ${reason}. Start with the far corner, lay out what is needed the evening before, and look at the ${more} once that is behind you. If ${pick(reasons, 4)}, tell me and we go through the order of the steps again.`,
    },
  ]
}

/** The nth turn of a brief conversation: about 25 tokens per side. */
export function briefTurn(turn: number): readonly [MessageInput, MessageInput] {
  const subject = subjects[turn % subjects.length]
  return [
    {
      role: 'user',
      content: `Turn ${turn}: what does it take to have the ${subject} in order before the first guests come?`,
    },
    {
      role: 'assistant',
      content: `For turn ${turn}: two people and a dry week are enough to have the ${subject} in order.`,
    },
  ]
}

/** Messages of both sides of consecutive turns. */
export const sampleMessages = (first: number, count: number): readonly MessageInput[] =>
  Array.from({ length: count }, (_, at) => sampleTurn(first + at)).flat()

export const countWords = (text: string): number => text.split(/\s+/).filter((word) => word !== '').length

/** Appends this many messages to `acme:ann`, alternating between user and assistant, and waits for upkeep. */
export async function appendAlternating(
  memory: Memory,
  count: number,
  contentAt: (index: number) => string,
): Promise<void> {
  for (let index = 0; index < count; index++)
    await memory.append('acme:ann', [{ role: index % 2 === 0 ? 'user' : 'assistant', content: contentAt(index) }])
  await memory.upkeep.whenIdle()
}
