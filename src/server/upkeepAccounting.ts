import { MemoryError } from '../domain/error.ts'
import { formatKey, type Key } from '../domain/key.ts'
import type { ModelUsage, Tokenizer } from '../domain/ports.ts'
import { internalsOf } from '../memory.ts'
import { countMessageTokens } from '../text/cost.ts'
import { normalizeSecrets } from '../text/secrets.ts'
import { describeFault } from './http/httpError.ts'
import { computeRequestCost } from './observability/prices.ts'
import { newReceiptId, storeReceipt, type UpkeepReceipt } from './receipts.ts'
import type { ServerContext } from './serverContext.ts'
import type { UpkeepCall } from './upstreams/sessionModels.ts'

/** Books a call of the upkeep model to its session: in the metrics, in its usage, and as a receipt of its own. */
export function recordUpkeepCall(server: ServerContext, key: Key, call: UpkeepCall): void {
  const { metrics, usageStats, prices, tokenizer } = server
  const tokens = call.usage ?? estimateUsage(tokenizer, call)
  const cost = computeRequestCost(prices, call.model, tokens)
  const record = { key: formatKey(key), scope: key.scope, upstream: call.upstream, tokens, dollars: cost?.total ?? 0 }
  metrics.recordUpkeepCall(record)
  usageStats.recordUpkeepCall(record)
  const receipt: UpkeepReceipt = {
    id: newReceiptId(key),
    key: record.key,
    at: server.clock(),
    purpose: 'upkeep',
    model: normalizeSecrets(call.model),
    upstream: call.upstream,
    tokens,
    cost: cost === undefined ? null : { ...cost, isEstimated: call.usage === undefined },
  }
  storeUpkeepReceipt(server, key, receipt).catch((error: unknown) => {
    // A server that shuts down closes its stores before a running call ends.
    if (!(error instanceof MemoryError && error.code === 'closed')) server.onFault('upkeep', describeFault(error))
  })
}

async function storeUpkeepReceipt({ memories }: ServerContext, key: Key, receipt: UpkeepReceipt): Promise<void> {
  const { memory } = await memories.resolve(key)
  await memories.using(memory, () => storeReceipt(internalsOf(memory).sessions, key, receipt))
}

/** Counts a call whose upstream reports no token counts. */
function estimateUsage(tokenizer: Tokenizer, { messages, reply }: UpkeepCall): ModelUsage {
  const prompt = messages.reduce(
    (sum, { role, content }) => sum + countMessageTokens(tokenizer, { role, content }),
    tokenizer.overhead.reply,
  )
  return { prompt, completion: tokenizer.count(reply), cached: 0 }
}
