// Secrets in text: how many marks do ordinary conversations get, and how long does it take? --show prints each mark with what surrounds it.
import { findSecrets } from '../src/text/secrets.ts'
import { load } from './data.ts'

const show = process.argv.includes('--show')
const context = 60

const flat = (text: string): string => text.replace(/\s+/g, ' ')

for (const name of ['transcripts-dev', 'locomo-dev', 'beam-100k'] as const) {
  const texts = load(name).flatMap(({ messages }) => messages.map((message) => message.text))
  let [words, characters, marks, took] = [0, 0, 0, 0]
  for (const text of texts) {
    words += text.split(/\s+/).length
    characters += text.length
    const start = performance.now()
    const found = findSecrets(text)
    took += performance.now() - start
    marks += found.length
    if (!show) continue
    for (const { kind, start, end } of found)
      console.log(
        `  ${kind}: ${flat(text.slice(Math.max(0, start - context), start))}⟦${flat(text.slice(start, end))}⟧${flat(text.slice(end, end + context))}`,
      )
  }
  const each = ((10_000 * marks) / words).toFixed(2)
  console.log(
    `${name}: ${words} words, ${marks} marks, ${each} per 10,000 words, ${((1_000_000 * took) / characters).toFixed(1)} ms per MB`,
  )
}
