import { LruCache } from '../domain/lruCache.ts'
import type { Tokenizer } from '../domain/ports.ts'
import { runSync, type Work } from '../domain/work.ts'
import { findDependencies, type LineDependencies } from './dependencies.ts'
import { type Line, splitLinesInSteps } from './lines.ts'

/** Line of a conversation. */
export type ConversationLine = Line & {
  /** Index of its message. */
  readonly message: number
}

/** Lines of a conversation, oldest first. */
export type ConversationLines = {
  readonly lines: readonly ConversationLine[]
  /** Dependencies of each line as indexes of `lines`; undefined for a line without words. */
  readonly dependencies: readonly (LineDependencies | undefined)[]
  /** Returns the range of a message's lines; incomplete if the beginning of its text is too long to be analysed. */
  readonly linesOf: (message: number) => { readonly start: number; readonly end: number; readonly isComplete: boolean }
}

type TextAnalysis = {
  readonly lines: readonly Line[]
  readonly dependencies: readonly (LineDependencies | undefined)[]
}

/** Only the end of a longer message is analysed. */
const maxMessageChars = 200_000
/** Memory of the analyses that are kept: about four conversations of 64,000 tokens. */
const defaultMaxCachedBytes = 16_000_000
/** Measured memory of an analysis: per character of prose, and per line. */
const bytesPer = { character: 5, line: 400 } as const

/** Cost of a message and of a line beside their analysis, in characters. */
const messageWork = 20
const lineWork = 4

/**
 * Splits messages into lines. Each message is analysed on its own and the analysis is cached by its text, so that a
 * turn analyses only new messages.
 */
export class LineAnalyzer {
  readonly tokenizer: Tokenizer
  readonly #cache: LruCache<string, TextAnalysis>

  constructor(tokenizer: Tokenizer, { maxCachedBytes = defaultMaxCachedBytes }: { maxCachedBytes?: number } = {}) {
    this.tokenizer = tokenizer
    this.#cache = new LruCache({ maxTotalSize: maxCachedBytes })
  }

  /** Estimated memory of the cached analyses. */
  get cachedBytes(): number {
    return this.#cache.totalSize
  }

  /** Returns the lines of a conversation, given the texts of its messages. */
  analyze(texts: readonly string[]): ConversationLines {
    return runSync(this.analyzeInSteps(texts))
  }

  /** `analyze` as interruptible work. */
  *analyzeInSteps(texts: readonly string[]): Work<ConversationLines> {
    const lines: ConversationLine[] = []
    const dependencies: (LineDependencies | undefined)[] = []
    const starts: number[] = []
    for (const [message, text] of texts.entries()) {
      const start = lines.length
      const analysis = yield* this.#analyzeInSteps(text)
      starts.push(start)
      yield messageWork
      for (const [index, line] of analysis.lines.entries()) {
        const found = analysis.dependencies[index]
        lines.push({ ...line, message })
        dependencies.push(found && shift(found, start))
        yield lineWork
      }
    }
    return {
      lines,
      dependencies,
      linesOf: (message) => ({
        start: starts[message] ?? lines.length,
        end: starts[message + 1] ?? lines.length,
        isComplete: (texts[message]?.length ?? 0) <= maxMessageChars,
      }),
    }
  }

  *#analyzeInSteps(text: string): Work<TextAnalysis> {
    const cached = this.#cache.get(text)
    if (cached !== undefined) return cached
    const lines = yield* splitLinesInSteps(text, this.tokenizer, Math.max(0, text.length - maxMessageChars))
    const analysis = { lines, dependencies: yield* findDependencies(lines) }
    this.#cache.set(text, analysis, text.length * bytesPer.character + lines.length * bytesPer.line)
    return analysis
  }
}

const shift = ({ required, neighbours }: LineDependencies, offset: number): LineDependencies => ({
  required: required.map((index) => index + offset),
  neighbours: neighbours.map((index) => index + offset),
})
