// Secret detection: messages with matches, matches per 1,000 words in ordinary conversations, and CPU time per MB. Exits
// with 1 if too many messages of a set have matches. --show prints each match with its context.
import { findSecrets } from '../src/text/secrets.ts'
import { loadDataset } from './datasets.ts'

const show = process.argv.includes('--show')
const contextCharacters = 60
const repetitions = 3
/** Largest share of messages with a match in a set of conversations, which have hardly any secrets. */
const maxMatchedShare = 0.001

const collapseWhitespace = (text: string): string => text.replace(/\s+/g, ' ')

const formatShare = (share: number): string => `${(100 * share).toFixed(3)} %`

console.log(`limit: matches in at most ${formatShare(maxMatchedShare)} of the messages of each set`)
const names = ['transcripts-dev', 'locomo-dev', 'beam-100k', 'friends-dev', 'qmsum-dev', 'realmem-dev'] as const
for (const name of names) {
  const texts = (await loadDataset(name)).flatMap(({ messages }) => messages.map((message) => message.text))
  let [words, characters, matches, messages] = [0, 0, 0, 0]
  for (const text of texts) {
    words += text.split(/\s+/).length
    characters += text.length
    const found = findSecrets(text)
    matches += found.length
    messages += Math.min(1, found.length)
    if (!show) continue
    for (const { kind, start, end } of found)
      console.log(
        `  ${kind}: ${collapseWhitespace(text.slice(Math.max(0, start - contextCharacters), start))}⟦${collapseWhitespace(text.slice(start, end))}⟧${collapseWhitespace(text.slice(end, end + contextCharacters))}`,
      )
  }
  const before = process.cpuUsage()
  for (let count = 0; count < repetitions; count++) for (const text of texts) findSecrets(text)
  const { user, system } = process.cpuUsage(before)
  const perMegabyte = (user + system) / 1_000 / repetitions / (characters / 1_000_000)
  console.log(
    `${name}: ${messages} of ${texts.length} messages (${formatShare(messages / texts.length)}), ${((1_000 * matches) / words).toFixed(4)} matches per 1,000 words, ${perMegabyte.toFixed(1)} ms per MB`,
  )
  if (messages <= maxMatchedShare * texts.length) continue
  console.error(
    `${name}: MISSED, more than ${formatShare(maxMatchedShare)} of the messages have matches. List them with --show.`,
  )
  process.exitCode = 1
}
