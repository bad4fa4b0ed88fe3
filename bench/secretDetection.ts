// Secret detection: matches per 10,000 words in ordinary conversations, and time per MB. --show prints each match with
// its context.
import { findSecrets } from '../src/text/secrets.ts'
import { loadDataset } from './datasets.ts'

const show = process.argv.includes('--show')
const contextCharacters = 60

const collapseWhitespace = (text: string): string => text.replace(/\s+/g, ' ')

for (const name of ['transcripts-dev', 'locomo-dev', 'beam-100k'] as const) {
  const texts = (await loadDataset(name)).flatMap(({ messages }) => messages.map((message) => message.text))
  let [words, characters, matches, elapsedMs] = [0, 0, 0, 0]
  for (const text of texts) {
    words += text.split(/\s+/).length
    characters += text.length
    const start = performance.now()
    const found = findSecrets(text)
    elapsedMs += performance.now() - start
    matches += found.length
    if (!show) continue
    for (const { kind, start, end } of found)
      console.log(
        `  ${kind}: ${collapseWhitespace(text.slice(Math.max(0, start - contextCharacters), start))}⟦${collapseWhitespace(text.slice(start, end))}⟧${collapseWhitespace(text.slice(end, end + contextCharacters))}`,
      )
  }
  const rate = ((10_000 * matches) / words).toFixed(2)
  console.log(
    `${name}: ${words} words, ${matches} matches, ${rate} per 10,000 words, ${((1_000_000 * elapsedMs) / characters).toFixed(1)} ms per MB`,
  )
}
