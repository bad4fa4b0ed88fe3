import type { OperationName } from './operations.ts'

/** A route of the server: method, path template and operation. */
export type Route = {
  readonly method: 'GET' | 'POST' | 'DELETE'
  readonly path: string
  readonly name: OperationName
}

type RouteTable = readonly (readonly [method: Route['method'], path: string, name: OperationName])[]

/** Routes of the model protocols, each with the key in the path (`/v1/{key}/…`) and in a header (`/v1/…`). */
const protocolRoutes: RouteTable = [
  ['POST', 'chat/completions', 'createChatCompletion'],
  ['POST', 'responses', 'createResponse'],
  ['GET', 'responses/{response}', 'getResponse'],
  ['DELETE', 'responses/{response}', 'deleteResponse'],
  ['POST', 'responses/{response}/cancel', 'cancelResponse'],
  ['GET', 'responses/{response}/input_items', 'listInputItems'],
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
]

/** Operations that are also served under `/v1/{key}/v1`: Anthropic's clients append `/v1` to any base URL. */
const doubleVersioned: readonly OperationName[] = [
  'createChatCompletion',
  'createResponse',
  'getResponse',
  'deleteResponse',
  'cancelResponse',
  'listInputItems',
  'createEmbedding',
  'createMessage',
  'countTokens',
  'listModels',
  'getModel',
]

const ownRoutes: RouteTable = [
  ['GET', '/v1', 'probe'],
  ['GET', '/api/sessions', 'listSessions'],
  ['POST', '/api/sessions', 'createSession'],
  ['GET', '/api/sessions/{key}', 'getSession'],
  ['DELETE', '/api/sessions/{key}', 'deleteSession'],
  ['GET', '/api/sessions/{key}/messages', 'listMessages'],
  ['GET', '/api/sessions/{key}/context', 'getContext'],
  ['GET', '/api/sessions/{key}/replay', 'replayContext'],
  ['GET', '/api/sessions/{key}/summaries', 'listSummaries'],
  ['GET', '/api/sessions/{key}/facts', 'listFacts'],
  ['GET', '/api/sessions/{key}/record', 'getRecord'],
  ['POST', '/api/sessions/{key}/record', 'updateRecord'],
  ['DELETE', '/api/sessions/{key}/record', 'clearRecord'],
  ['GET', '/api/sessions/{key}/branches', 'listBranches'],
  ['GET', '/api/sessions/{key}/branches/{branch}', 'getBranch'],
  ['GET', '/api/sessions/{key}/receipts', 'listReceipts'],
  ['GET', '/api/sessions/{key}/metrics', 'getSessionMetrics'],
  ['POST', '/api/sessions/{key}/transfer', 'transferSession'],
  ['GET', '/api/sessions/{key}/export', 'exportSession'],
  ['POST', '/api/sessions/{key}/files', 'uploadFileByKey'],
  ['GET', '/api/scopes/{scope}/knowledge', 'listKnowledge'],
  ['POST', '/api/scopes/{scope}/knowledge', 'createKnowledge'],
  ['POST', '/api/scopes/{scope}/knowledge/{knowledge}/restore', 'restoreKnowledge'],
  ['POST', '/api/scopes/{scope}/knowledge/{knowledge}/approve', 'approveKnowledge'],
  ['DELETE', '/api/scopes/{scope}/knowledge/{knowledge}', 'deleteKnowledge'],
  ['GET', '/api/scopes/{scope}/files', 'listFiles'],
  ['POST', '/api/scopes/{scope}/files', 'uploadFile'],
  ['GET', '/api/scopes/{scope}/files/{file}', 'getFile'],
  ['GET', '/api/scopes/{scope}/files/{file}/text', 'getFileText'],
  ['DELETE', '/api/scopes/{scope}/files/{file}', 'deleteFile'],
  ['POST', '/api/scopes/{scope}/import', 'importSessions'],
  ['GET', '/api/scopes/{scope}/search', 'search'],
  ['GET', '/api/scopes/{scope}/metrics', 'getScopeMetrics'],
  ['POST', '/api/forget', 'forget'],
  ['POST', '/api/forget/preview', 'previewForget'],
  ['GET', '/api/receipts/{receipt}', 'getReceipt'],
  ['POST', '/mcp', 'sendMcpMessage'],
  ['GET', '/learning/optimizer/status', 'getOptimizerStatus'],
  ['GET', '/api/scopes/{scope}/graph', 'getGraph'],
  ['GET', '/api/access', 'getAccess'],
  ['GET', '/api/usage', 'getUsageSeries'],
  ['GET', '/api/operations', 'getOperations'],
  ['GET', '/api/events', 'streamEvents'],
  ['GET', '/', 'getHome'],
  ['GET', '/assets/{asset}', 'getAsset'],
  ['GET', '/healthz', 'getHealth'],
  ['GET', '/readyz', 'getReadiness'],
  ['GET', '/metrics', 'getMetrics'],
  ['GET', '/openapi.json', 'getOpenApi'],
  ['GET', '/docs', 'getDocs'],
]

/** All routes. The server has a handler for each; all other paths under `/v1` are forwarded to an upstream. */
export const routes: readonly Route[] = [
  ...protocolRoutes.flatMap(([method, path, name]) =>
    prefixesOf(name).map((prefix): Route => ({ method, path: `${prefix}/${path}`, name })),
  ),
  ...ownRoutes.map(([method, path, name]): Route => ({ method, path, name })),
]

function prefixesOf(name: OperationName): readonly string[] {
  return ['/v1/{key}', '/v1', ...(doubleVersioned.includes(name) ? ['/v1/{key}/v1'] : [])]
}
