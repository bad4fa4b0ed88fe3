import { it } from 'vitest'
import { summarise } from '../../src/upkeep/summarise.ts'
import { smuggledIn } from '../../src/upkeep/summarise/smuggled.ts'
import { poisoned } from './poisoned.ts'
it('x', async () => {
  for (const n of ['a diff', 'a tool call', 'letters with zero-width between']) {
    const p = poisoned.find((x) => x.name === n)!
    console.log(n, smuggledIn(p.text), smuggledIn(p.demand))
    const m = (id: number, role: any, content: string) => ({ id: `m${id}`, sequence: id, at: 0, role, content })
    console.log(summarise([m(1, 'tool', p.text)], undefined, { words: [3, 90] }).text)
    console.log(summarise([m(1, 'assistant', `The page reads: ${p.text}`)], undefined, { words: [3, 90] }).text)
    console.log(summarise([m(1, 'user', `What do you make of this?\n${p.text.replace(/^/gm, '> ')}`)], undefined, { words: [3, 90] }).text)
    console.log(summarise([m(1, 'user', `And of this?\n<page>\n${p.text}\n</page>`)], undefined, { words: [3, 90] }).text)
  }
})
