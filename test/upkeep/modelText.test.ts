import { describe, expect, it } from 'vitest'
import { runSync } from '../../src/domain/work.ts'
import { cleanModelText, dropUnfinished, trimToTarget } from '../../src/upkeep/summarise/modelText.ts'

const summary = 'Order BK-1 is late.'

describe('cleanModelText', () => {
  it.each([
    `Sure! Here is the summary:\n\n${summary}`,
    `Here's a concise summary of our conversation so far: ${summary}`,
    `**Summary**\n\n${summary}`,
    `# Conversation Summary\n${summary}`,
    `Summary: ${summary}`,
    `Updated summary of the conversation:\n${summary}`,
    `Hier ist die Zusammenfassung:\n${summary}`,
    `Bien sûr ! Voici le résumé :\n${summary}`.replace(' !', '!').replace(' :', ':'),
    `\`\`\`markdown\n${summary}\n\`\`\``,
    `"${summary}"`,
    `<think>Which order? BK-1.</think>\n${summary}`,
    `${summary}\n\nLet me know if you need more details!`,
    `${summary}\n\n(Word count: 4)`,
    `---\n${summary}\n---`,
  ])('with %j › returns the summary alone', (reply) => expect(cleanModelText(reply)).toBe(summary))

  it('with bullets, headings and bold text › leaves plain lines', () =>
    expect(cleanModelText('## Order\n* **BK-1** is late\n• Refund wanted')).toBe(
      'Order\n- BK-1 is late\n- Refund wanted',
    ))
  it.each([
    'The user asked for a summary of sales: 40 units.',
    'Here the user lives.',
    'Sure-Fit Ltd. delivers on Monday.',
    'Let me know was the name of the song.',
  ])('with content that resembles a preamble › keeps it: %s', (text) => expect(cleanModelText(text)).toBe(text))
})

describe('dropUnfinished', () => {
  it('with an unfinished sentence after prose › removes it', () =>
    expect(dropUnfinished('BK-1 is late. It was sent. The user wants')).toBe('BK-1 is late. It was sent.'))
  it('with bullets › keeps the last one', () =>
    expect(dropUnfinished('- BK-1 is late\n- Refund')).toBe('- BK-1 is late\n- Refund'))
})

describe('trimToTarget', () => {
  const weigh = (sentence: string): number => (/\d/.test(sentence) ? 9 : 1)
  const text = 'Order BK-1 is late.\nThey greeted each other.\nThe refund is $40 at least.'
  it('with a text that is a little too long › removes the sentences with the lowest weight', () =>
    expect(runSync(trimToTarget(text, { words: [1, 11] }, weigh))).toBe(
      'Order BK-1 is late.\nThe refund is $40 at least.',
    ))
  it('with a text that is far too long › returns undefined', () =>
    expect(runSync(trimToTarget(text, { words: [1, 3] }, weigh))).toBeUndefined())
})
