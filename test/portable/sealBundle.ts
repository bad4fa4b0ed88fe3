import { chainStart, createChainLine, type LineBody } from '../../src/portable/chain.ts'

/** Parses the lines of a bundle, without their hashes. */
export const parseBodies = (bundle: Buffer): LineBody[] =>
  bundle
    .toString()
    .trimEnd()
    .split('\n')
    .map((line) => {
      const { hash: _, ...body } = JSON.parse(line)
      return body
    })

/** Writes the lines of a bundle with valid hashes. */
export function sealBundle(bodies: readonly LineBody[]): Buffer {
  let previous = chainStart
  const lines = bodies.map((body) => {
    const { line, hash } = createChainLine(previous, body)
    previous = hash
    return `${line}\n`
  })
  return Buffer.from(lines.join(''))
}
