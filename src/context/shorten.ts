import type { RenderStep } from '../domain/profile.ts'
import type { Work } from '../domain/work.ts'
import { clip, clipMiddle } from '../text/clip.ts'
import { stripComments } from '../text/comments.ts'
import { squeezeSpaceInSteps } from '../text/compress.ts'
import { digest } from '../text/digest.ts'
import { compactJson } from '../text/json.ts'
import type { PassageRange } from '../text/passages.ts'

/** Trims white space first, so that a short cut never consists of white space only. */
export function keepEnds(content: string, characters: number): string {
  if (content.length <= characters) return content
  const text = content.trim()
  return characters < 60
    ? clip(text, Math.max(1, characters))
    : clipMiddle(text, Math.ceil(characters / 2), Math.floor(characters / 2))
}

/** Keeps the end, which continues in the next message. */
export const keepEnd = (content: string, characters: number): string =>
  content.length <= characters ? content : clipMiddle(content.trim(), 0, Math.max(1, characters), '… ')

/** Joins passages, with `…` for each part between, before and after them. */
export function joinPassages(content: string, passages: readonly PassageRange[]): string {
  const runs: [number, number][] = []
  for (const [start, end] of passages) {
    const last = runs.at(-1)
    if (last?.[1] === start) last[1] = end
    else runs.push([start, end])
  }
  const text = runs.map(([start, end]) => content.slice(start, end).trim()).join(' … ')
  const [first, last] = [runs[0]?.[0] ?? 0, runs.at(-1)?.[1] ?? 0]
  return `${first > 0 ? '… ' : ''}${text}${last < content.length ? ' …' : ''}`
}

/** Returns a content as a step renders it. */
export function* shortenInSteps(content: string, step: RenderStep, role: string): Work<string> {
  if (step.as === 'squeeze') return yield* squeezeSpaceInSteps(content)
  if (step.as === 'json') return compactJson(content)
  if (step.as === 'uncomment') return yield* squeezeSpaceInSteps(stripComments(content))
  if (step.as === 'digest') return digest(content, role)
  return step.as === 'clip' ? clip(content, step.characters) : content
}
