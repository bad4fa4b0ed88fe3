import type { LazyContext } from '../context/composeContext.ts'
import type { Unit } from '../context/render.ts'
import type { MessageInput } from '../domain/chat.ts'
import type { Tokens } from '../domain/entry.ts'
import type { Key } from '../domain/key.ts'
import type { Provider } from '../domain/ledger.ts'
import type { SessionHead } from '../domain/session.ts'
import type { AppendOptions, AppendResult, InternalAppendOptions } from './append.ts'
import type { AdditionOptions, ContextOptions, StoredQuestionOptions } from './contextBuilder.ts'
import type { EmbeddingQueue } from './embedding.ts'
import type { MemoryDeps } from './memoryDeps.ts'

/** Internal access for the other parts of this package (server, MCP, handoff, CLI). The package does not export it. */
export type MemoryInternals = MemoryDeps & {
  /** Queues of the stores of sessions and scopes; none without an embedder. */
  readonly embeddings: readonly EmbeddingQueue[]
  /** Appends like `append`, returns the epoch too, and skips reading the session when `head` was read just now. */
  append(
    key: Key,
    messages: readonly MessageInput[],
    options: InternalAppendOptions,
    head?: SessionHead,
  ): Promise<AppendResult>
  /** Appends without lifecycle limits, upkeep or vectors, for branches. */
  appendRaw(key: Key, messages: readonly MessageInput[], options?: AppendOptions): Promise<AppendResult>
  /** Builds a context like `context`, with its text rendered on demand. */
  buildContext(key: Key, options: ContextOptions & StoredQuestionOptions, provider?: Provider): Promise<LazyContext>
  /** Builds what memory knows beyond the conversation that a client sends itself. */
  buildAdditions(key: Key, options: AdditionOptions): Promise<LazyContext>
  /** Finds the messages of a session, or passages of them, that matter to a question, best first. */
  recall(key: Key, question: string, budget: Tokens): Promise<readonly Unit[]>
}
