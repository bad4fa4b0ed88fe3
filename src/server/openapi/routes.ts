export type Method = 'GET' | 'POST' | 'DELETE'

/** A route the server answers, with the template of its address and the name of what it does. */
export type Route = { readonly method: Method; readonly path: string; readonly name: OperationName }

/** Protocols of others. Each has the key in its address (`/v1/{key}/…`) or in the header `x-threadkeep-key` (`/v1/…`). */
const spoken = [
  ['POST', 'chat/completions', 'createChatCompletion'],
  ['POST', 'responses', 'createResponse'],
  ['POST', 'conversations', 'createConversation'],
  ['GET', 'conversations/{conversation}', 'getConversation'],
  ['POST', 'conversations/{conversation}', 'updateConversation'],
  ['DELETE', 'conversations/{conversation}', 'deleteConversation'],
  ['GET', 'conversations/{conversation}/items', 'listItems'],
  ['POST', 'conversations/{conversation}/items', 'createItems'],
  ['GET', 'conversations/{conversation}/items/{item}', 'getItem'],
  ['DELETE', 'conversations/{conversation}/items/{item}', 'deleteItem'],
  ['POST', 'embeddings', 'createEmbedding'],
  ['GET', 'models', 'listModels'],
  ['GET', 'models/{model}', 'getModel'],
  ['POST', 'messages', 'createMessage'],
  ['POST', 'messages/count_tokens', 'countTokens'],
] as const

/** Anthropic's clients write `/v1` behind whatever base address they are given. */
const doubled: readonly OperationName[] = ['createMessage', 'countTokens', 'listModels', 'getModel']

const own = [
  ['GET', '/api/sessions', 'listSessions'],
  ['POST', '/api/sessions', 'beginSession'],
  ['GET', '/api/sessions/{key}', 'getSession'],
  ['DELETE', '/api/sessions/{key}', 'endSession'],
  ['GET', '/api/sessions/{key}/messages', 'listMessages'],
  ['GET', '/api/sessions/{key}/context', 'getContext'],
  ['GET', '/api/sessions/{key}/summaries', 'listSummaries'],
  ['GET', '/api/sessions/{key}/facts', 'listFacts'],
  ['GET', '/api/sessions/{key}/branches', 'listBranches'],
  ['GET', '/api/sessions/{key}/branches/{branch}', 'getBranch'],
  ['GET', '/api/sessions/{key}/receipts', 'listReceipts'],
  ['GET', '/api/sessions/{key}/metrics', 'getSessionMetrics'],
  ['POST', '/api/sessions/{key}/transfer', 'transferSession'],
  ['POST', '/api/sessions/{key}/files', 'uploadByKey'],
  ['GET', '/api/scopes/{scope}/knowledge', 'listKnowledge'],
  ['POST', '/api/scopes/{scope}/knowledge', 'remember'],
  ['DELETE', '/api/scopes/{scope}/knowledge/{knowledge}', 'forgetKnowledge'],
  ['GET', '/api/scopes/{scope}/files', 'listFiles'],
  ['POST', '/api/scopes/{scope}/files', 'uploadFile'],
  ['GET', '/api/scopes/{scope}/files/{file}', 'getFile'],
  ['GET', '/api/scopes/{scope}/files/{file}/text', 'getFileText'],
  ['DELETE', '/api/scopes/{scope}/files/{file}', 'deleteFile'],
  ['GET', '/api/scopes/{scope}/search', 'search'],
  ['GET', '/api/scopes/{scope}/metrics', 'getScopeMetrics'],
  ['POST', '/api/forget', 'forget'],
  ['GET', '/api/receipts/{receipt}', 'getReceipt'],
  ['POST', '/mcp', 'speakMcp'],
  ['GET', '/learning/optimizer/status', 'getOptimizerStatus'],
  ['GET', '/healthz', 'getHealth'],
  ['GET', '/readyz', 'getReadiness'],
  ['GET', '/metrics', 'getMetrics'],
  ['GET', '/openapi.json', 'getOpenApi'],
] as const

export type OperationName = (typeof spoken)[number][2] | (typeof own)[number][2]

/** Every route there is. The server has a handler for each, and for no others. */
export const routes: readonly Route[] = [
  ...spoken.flatMap(([method, path, name]) =>
    prefixes(name).map((prefix): Route => ({ method, path: `${prefix}/${path}`, name })),
  ),
  ...own.map(([method, path, name]): Route => ({ method, path, name })),
]

function prefixes(name: OperationName): readonly string[] {
  return ['/v1/{key}', '/v1', ...(doubled.includes(name) ? ['/v1/{key}/v1'] : [])]
}
