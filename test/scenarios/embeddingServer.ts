import type { Behaviour, RecordedRequest, Upstream } from '../providers/upstream.ts'
import { respondWithStatus, sendRaw, startUpstream } from '../providers/upstream.ts'

/** Faults of an embedding server. */
export type Fault = 'hangs' | 'fails' | 'other dimensions'

/** Words of each concept; a text is embedded as how much it is about each of them. */
const concepts: readonly RegExp[] = [/cat|grimalkin|kitten|animal|zorble/i, /car|vehicle|garage/i, /holiday|beach|sea/i]

/** Embeds by concept. The last number is the same for all texts, as no real vector is zero. */
const encode = (text: string): number[] => [...concepts.map((words) => (words.test(text) ? 1 : 0)), 0.1]

export type EmbeddingServer = Upstream & {
  /** Texts received, in order. */
  texts(): readonly string[]
  /** Sets the fault of the next requests. */
  fault: Fault | undefined
}

/** Starts a server with OpenAI's and Ollama's embedding protocol and a deterministic encoder. */
export async function startEmbeddingServer(): Promise<EmbeddingServer> {
  const upstream = await startUpstream((request): Behaviour => {
    if (server.fault === 'hangs') return { does: 'hang' }
    if (server.fault === 'fails') return respondWithStatus(500)
    const vectors = inputOf(request).map((text) => encode(text).slice(server.fault === undefined ? 0 : 2))
    return sendRaw('application/json', JSON.stringify(toResponse(request.path, vectors)))
  })
  const server: EmbeddingServer = {
    ...upstream,
    texts: () => upstream.requests.flatMap(inputOf),
    fault: undefined,
  }
  return server
}

const inputOf = ({ body }: RecordedRequest): readonly string[] => body.input

const toResponse = (path: string, vectors: readonly number[][]): object =>
  path === '/api/embed'
    ? { model: 'toy', embeddings: vectors }
    : { object: 'list', data: vectors.map((embedding, index) => ({ object: 'embedding', index, embedding })) }
