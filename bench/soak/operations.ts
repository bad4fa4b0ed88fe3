// Requests of the soak: what clients of a proxy do, in fixed shares and a repeatable order.
import { Pool } from 'undici'
import { createRandom, createSentences } from '../corpus.ts'
import { Outcomes } from './outcomes.ts'
import { type Failure, failures, type SoakUpstream } from './upstream.ts'

const tenants = 200
/** Sessions that clients may return to; beyond it the oldest are ended or abandoned. */
const maxOpenSessions = 400
const maxTurns = 30
const largeMessageCharacters = 100_000
/** Entries of each kind that are kept before the oldest is deleted. */
const maxKept = 200

type Message = { readonly role: 'user' | 'assistant'; readonly content: string }
type ToolResult = {
  readonly structuredContent?: Readonly<Record<string, unknown>>
  readonly content?: readonly { readonly text?: string }[]
}
type SoakSession = {
  readonly key: string
  readonly headers: Readonly<Record<string, string>>
  messages: Message[]
  turns: number
  isBusy: boolean
  /** A turn was stored since the session was created or forgotten. */
  isStored: boolean
}

/** What the client sees of each failure of the model server; the others end or break off a stream, or change nothing. */
const statusesOf: Readonly<Record<Failure, readonly number[]>> = {
  'refuse-400': [400],
  'fail-500': [500],
  'break-off': [502],
  'send-garbage': [502],
  'drip-slowly': [],
}

type RequestOptions = {
  readonly headers?: Readonly<Record<string, string>>
  readonly signal?: AbortSignal
  /** Session that a successful request stores a turn in. */
  readonly session?: SoakSession
  /** Failure that the request provokes. */
  readonly failure?: Failure
  /** Failures that are no defect. Default: those of `failure`. */
  readonly expected?: readonly number[]
}

/** Runs operations against a server. One instance holds the state of all clients. */
export class SoakClients {
  readonly outcomes = new Outcomes()
  private readonly pool: Pool
  private readonly random = createRandom(7)
  private readonly sentences = createSentences(20_000, 9)
  private readonly open: SoakSession[] = []
  private readonly saved: { readonly workspaceId: string; readonly sessionId: string }[] = []
  private readonly knowledge: { readonly scope: string; readonly id: string }[] = []
  private readonly files: { readonly scope: string; readonly id: string }[] = []
  private sessionCount = 0
  private readonly operations = this.weigh([
    [30, () => this.sendFull(false)],
    [16, () => this.sendFull(true)],
    [10, () => this.sendThin()],
    [10, () => this.sendAnthropic()],
    [4, () => this.sendResponse()],
    [2, () => this.sendLarge()],
    [4, () => this.abort()],
    [4, () => this.provokeFailure()],
    [5, () => this.search()],
    [3, () => this.addKnowledge()],
    [3, () => this.saveAndRestore()],
    [1, () => this.uploadFile()],
    [1, () => this.forget()],
    [2, () => this.endSession()],
    [3, () => this.readSession()],
    [2, () => this.probe()],
  ])

  private readonly upstream: SoakUpstream
  private failureCount = 0

  constructor(origin: string, connections: number, upstream: SoakUpstream) {
    this.pool = new Pool(origin, { connections })
    this.upstream = upstream
  }

  /** Runs one operation. Failed requests are counted, never thrown: the soak looks at the server's memory. */
  async runOne(): Promise<void> {
    const operation = this.pick(this.operations)
    try {
      await operation()
    } catch (error) {
      this.outcomes.addFailure(
        `${String(error)} ${error instanceof Error ? error.stack?.split('\n')[1]?.trim() : ''}`,
        false,
      )
    }
  }

  close(): Promise<void> {
    return this.pool.destroy()
  }

  private async sendFull(stream: boolean): Promise<void> {
    await this.useSession(async (session) => {
      session.messages.push({ role: 'user', content: this.say() })
      const text = await this.chat(session, { stream, messages: session.messages })
      const reply = stream ? readStream(text) : readReply(text)
      if (reply === undefined) session.messages.pop()
      else session.messages.push({ role: 'assistant', content: reply })
    })
  }

  private async sendThin(): Promise<void> {
    await this.useSession((session) =>
      this.chat(session, { stream: this.random() < 0.5, messages: [{ role: 'user', content: this.say() }] }),
    )
  }

  private async sendAnthropic(): Promise<void> {
    await this.useSession((session) => {
      const body = {
        ...{ model: 'claude-soak', max_tokens: 500, stream: this.random() < 0.5 },
        messages: [{ role: 'user', content: this.say() }],
      }
      return this.sendTurn(session, 'messages', body)
    })
  }

  private async sendResponse(): Promise<void> {
    await this.useSession((session) =>
      this.sendTurn(session, 'responses', { model: 'soak', input: this.say(), stream: this.random() < 0.5 }),
    )
  }

  private async sendLarge(): Promise<void> {
    let content = ''
    while (content.length < largeMessageCharacters) content += `${this.say()}\n`
    await this.useSession((session) => this.chat(session, { messages: [{ role: 'user', content }] }))
  }

  private async abort(): Promise<void> {
    await this.useSession(async (session) => {
      const controller = new AbortController()
      const timer = setTimeout(() => controller.abort(), this.random() * 30)
      await this.provoke('drip-slowly', async (content) => {
        const messages = [{ role: 'user', content }]
        await this.chat(session, { stream: true, messages }, { signal: controller.signal })
      }).finally(() => clearTimeout(timer))
    })
  }

  private async provokeFailure(): Promise<void> {
    const failure = this.pick(failures)
    await this.useSession((session) =>
      this.provoke(failure, (content) => {
        const body = { stream: this.random() < 0.5, messages: [{ role: 'user', content }] }
        return this.chat(session, body, { failure })
      }),
    )
  }

  /** Sends a message that the model server fails on, as long as the request runs: sessions repeat it later. */
  private async provoke(failure: Failure, send: (content: string) => Promise<unknown>): Promise<void> {
    const word = `${failure}-${this.failureCount++}`
    this.upstream.failing.add(word)
    await send(`${this.say()} ${word}`).finally(() => this.upstream.failing.delete(word))
  }

  private async search(): Promise<void> {
    const query = new URLSearchParams({ q: this.say().split(' ').slice(0, 4).join(' ') })
    await this.request('GET', `/api/scopes/${this.tenant()}/search?${query}`)
  }

  private async addKnowledge(): Promise<void> {
    const scope = this.tenant()
    const body = { category: 'domain', key: this.say().slice(0, 30), value: this.say() }
    const { id } = parseObject(await this.request('POST', `/api/scopes/${scope}/knowledge`, body))
    // The same key again changes an entry and keeps its id.
    const isKnown = this.knowledge.some((known) => known.scope === scope && known.id === id)
    if (typeof id === 'string' && !isKnown) this.knowledge.push({ scope, id })
    const oldest = this.knowledge.length > maxKept ? this.knowledge.shift() : undefined
    if (oldest !== undefined) await this.request('DELETE', `/api/scopes/${oldest.scope}/knowledge/${oldest.id}`)
  }

  private async saveAndRestore(): Promise<void> {
    const workspaceId = this.tenant()
    const messages = Array.from({ length: 6 }, (_, index) => ({
      role: index % 2 === 0 ? 'user' : 'assistant',
      content: this.say(),
    }))
    const { sessionId } = await this.callTool('save_session', { workspaceId, messages })
    if (typeof sessionId !== 'string') return
    this.saved.push({ workspaceId, sessionId })
    await this.callTool('restore_session', { workspaceId, sessionId, tokenBudget: 1_000, query: this.say() })
    const oldest = this.saved.length > maxKept ? this.saved.shift() : undefined
    if (oldest !== undefined) await this.callTool('delete_session', oldest)
  }

  private async callTool(name: string, args: object): Promise<Readonly<Record<string, unknown>>> {
    const body = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: args } }
    const headers = { accept: 'application/json, text/event-stream' }
    const text = await this.request('POST', '/mcp', body, { headers })
    const { result } = parseObject(text.startsWith('{') ? text : text.slice(text.indexOf('{')).split('\n')[0]) as {
      readonly result?: ToolResult
    }
    if (result?.structuredContent === undefined)
      this.outcomes.addFailure(`${name} without a result: ${result?.content?.[0]?.text ?? text}`, false)
    return result?.structuredContent ?? {}
  }

  private async uploadFile(): Promise<void> {
    const scope = this.tenant()
    const form = new FormData()
    const text = Array.from({ length: 20 }, () => this.say()).join('\n')
    form.set('file', new File([text], `note${Math.floor(this.random() * 1e6)}.txt`, { type: 'text/plain' }))
    const encoded = new Response(form)
    const headers = { 'content-type': encoded.headers.get('content-type') ?? '' }
    const path = `/api/scopes/${scope}/files`
    const { id } = parseObject(await this.request('POST', path, Buffer.from(await encoded.arrayBuffer()), { headers }))
    if (typeof id === 'string') this.files.push({ scope, id })
    const oldest = this.files.length > maxKept / 10 ? this.files.shift() : undefined
    if (oldest !== undefined) await this.request('DELETE', `/api/scopes/${oldest.scope}/files/${oldest.id}`)
  }

  private async forget(): Promise<void> {
    await this.useSession(async (session) => {
      session.messages = []
      await this.request('POST', '/api/forget', { key: session.key })
      session.isStored = false
    })
  }

  private async endSession(): Promise<void> {
    const index = Math.floor(this.random() * this.open.length)
    if (this.open[index]?.isBusy !== false) return
    const [session] = this.open.splice(index, 1)
    if (session?.isStored === true) await this.requestStored('DELETE', session)
  }

  private async readSession(): Promise<void> {
    await this.useSession(async (session) => {
      if (!session.isStored) return
      for (const path of [
        'messages?limit=50',
        `context?query=${encodeURIComponent(this.say().slice(0, 40))}`,
        'receipts',
      ])
        await this.requestStored('GET', session, `/${path}`)
    })
  }

  private async probe(): Promise<void> {
    for (const path of ['/healthz', '/readyz', '/metrics', '/learning/optimizer/status', '/api/sessions?limit=20'])
      await this.request('GET', path)
  }

  /** Runs an operation on an idle session, a new one in a tenth of the cases. */
  private async useSession(operation: (session: SoakSession) => Promise<unknown>): Promise<void> {
    let session = this.random() < 0.1 ? undefined : this.open[Math.floor(this.random() * this.open.length)]
    if (session === undefined || session.isBusy || session.turns >= maxTurns) session = this.createSession()
    session.isBusy = true
    session.turns++
    try {
      await operation(session)
    } finally {
      session.isBusy = false
    }
    const oldest = this.open.length > maxOpenSessions && this.open[0]?.isBusy === false ? this.open.shift() : undefined
    // Half of the sessions are never ended: stored sessions add up, memory must not.
    if (oldest?.isStored === true && this.random() < 0.5) await this.requestStored('DELETE', oldest)
  }

  private createSession(): SoakSession {
    const isInRam = this.random() < 0.3
    const session: SoakSession = {
      key: `${this.tenant()}:s${this.sessionCount++}`,
      headers: isInRam ? { 'x-threadkeep-template': 'ram' } : {},
      messages: [],
      turns: 0,
      isBusy: false,
      isStored: false,
    }
    this.open.push(session)
    return session
  }

  /** Sends a request for a session that has turns. The server ends sessions in RAM above its limit for them. */
  private requestStored(method: 'GET' | 'DELETE', { key, headers }: SoakSession, path = ''): Promise<string> {
    const isInRam = Object.keys(headers).length > 0
    return this.request(method, `/api/sessions/${key}${path}`, undefined, { expected: isInRam ? [404] : [] })
  }

  private chat(session: SoakSession, body: object, options?: RequestOptions): Promise<string> {
    return this.sendTurn(session, 'chat/completions', { model: 'soak', ...body }, options)
  }

  private sendTurn(session: SoakSession, path: string, body: object, options?: RequestOptions): Promise<string> {
    return this.request('POST', `/v1/${session.key}/${path}`, body, { headers: session.headers, session, ...options })
  }

  private async request(
    method: 'GET' | 'POST' | 'DELETE',
    path: string,
    body?: object,
    {
      headers = {},
      signal,
      session,
      failure,
      expected = failure === undefined ? [] : statusesOf[failure],
    }: RequestOptions = {},
  ): Promise<string> {
    try {
      const response = await this.pool.request({
        ...{ method, path },
        headers: { ...(body === undefined ? {} : { 'content-type': 'application/json' }), ...headers },
        body: body === undefined ? null : Buffer.isBuffer(body) ? body : JSON.stringify(body),
        ...(signal !== undefined && { signal }),
      })
      const { statusCode: status } = response
      const text = await response.body.text()
      if (session !== undefined && failure === undefined && status < 300) session.isStored = true
      this.outcomes.addResponse({ method, path, status, body: text, expected })
      return text
    } catch (error) {
      if (signal?.aborted === true) this.outcomes.count('aborted')
      else {
        this.outcomes.count('broken off')
        this.outcomes.addFailure(`${method} ${path} broken off: ${String(error)}`, failure === 'break-off')
      }
      return ''
    }
  }

  private say(): string {
    return this.pick(this.sentences)
  }

  private tenant(): string {
    return `t${Math.floor(this.random() * tenants)}`
  }

  private pick<T>(list: readonly T[]): T {
    return list[Math.floor(this.random() * list.length)] as T
  }

  private weigh(shares: readonly (readonly [number, () => Promise<void>])[]): readonly (() => Promise<void>)[] {
    return shares.flatMap(([share, operation]) => Array.from({ length: share }, () => operation))
  }
}

function parseObject(text = ''): Readonly<Record<string, unknown>> {
  try {
    return JSON.parse(text) as Readonly<Record<string, unknown>>
  } catch {
    return {}
  }
}

const readReply = (text: string): string | undefined =>
  (parseObject(text).choices as { message: { content: string } }[] | undefined)?.[0]?.message.content

const readStream = (text: string): string | undefined =>
  text.includes('[DONE]')
    ? text
        .split('\n\n')
        .filter((event) => event.startsWith('data: {'))
        .map((event) => {
          const { choices } = parseObject(event.slice(6)) as { choices?: { delta?: { content?: string } }[] }
          return choices?.[0]?.delta?.content ?? ''
        })
        .join('')
    : undefined
