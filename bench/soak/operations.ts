// Requests of the soak: what clients of a proxy do, in fixed shares and a repeatable order.
import { Pool } from 'undici'
import { createRandom, createSentences } from '../corpus.ts'
import { failures } from './upstream.ts'

const tenants = 20
/** Sessions that clients may return to; beyond it the oldest are ended or abandoned. */
const maxOpenSessions = 400
const maxTurns = 30
const largeMessageCharacters = 100_000
/** Entries of each kind that are kept before the oldest is deleted. */
const maxKept = 200

type Message = { readonly role: 'user' | 'assistant'; readonly content: string }
type SoakSession = {
  readonly key: string
  readonly headers: Readonly<Record<string, string>>
  messages: Message[]
  turns: number
  isBusy: boolean
}

/** Counts of the soak: requests by status class, and requests that clients aborted or that broke off. */
export type SoakCounts = Record<string, number>

/** Runs operations against a server. One instance holds the state of all clients. */
export class SoakClients {
  readonly counts: SoakCounts = {}
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

  constructor(origin: string, connections: number) {
    this.pool = new Pool(origin, { connections })
  }

  /** Runs one operation. Failed requests are counted, never thrown: the soak looks at the server's memory. */
  async runOne(): Promise<void> {
    const operation = this.pick(this.operations)
    try {
      await operation()
    } catch (error) {
      this.count(error instanceof Error && error.name === 'AbortError' ? 'aborted' : 'broken off')
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
    await this.useSession(({ key, headers }) => {
      const body = {
        ...{ model: 'claude-soak', max_tokens: 500, stream: this.random() < 0.5 },
        messages: [{ role: 'user', content: this.say() }],
      }
      return this.request('POST', `/v1/${key}/messages`, body, headers)
    })
  }

  private async sendResponse(): Promise<void> {
    await this.useSession(({ key, headers }) =>
      this.request(
        'POST',
        `/v1/${key}/responses`,
        { model: 'soak', input: this.say(), stream: this.random() < 0.5 },
        headers,
      ),
    )
  }

  private async sendLarge(): Promise<void> {
    let content = ''
    while (content.length < largeMessageCharacters) content += `${this.say()}\n`
    await this.useSession((session) => this.chat(session, { messages: [{ role: 'user', content }] }))
  }

  private async abort(): Promise<void> {
    await this.useSession(async ({ key, headers }) => {
      const controller = new AbortController()
      const timer = setTimeout(() => controller.abort(), this.random() * 30)
      const body = { model: 'soak', stream: true, messages: [{ role: 'user', content: `${this.say()} drip-slowly` }] }
      try {
        await this.request('POST', `/v1/${key}/chat/completions`, body, headers, controller.signal)
      } finally {
        clearTimeout(timer)
      }
    })
  }

  private async provokeFailure(): Promise<void> {
    await this.useSession((session) =>
      this.chat(session, {
        stream: this.random() < 0.5,
        messages: [{ role: 'user', content: `${this.say()} ${this.pick(failures)}` }],
      }),
    )
  }

  private async search(): Promise<void> {
    const query = new URLSearchParams({ q: this.say().split(' ').slice(0, 4).join(' ') })
    await this.request('GET', `/api/scopes/${this.tenant()}/search?${query}`)
  }

  private async addKnowledge(): Promise<void> {
    const scope = this.tenant()
    const body = { category: 'domain', key: this.say().slice(0, 30), value: this.say() }
    const { id } = parseObject(await this.request('POST', `/api/scopes/${scope}/knowledge`, body))
    if (typeof id === 'string') this.knowledge.push({ scope, id })
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
    const accept = { accept: 'application/json, text/event-stream' }
    const text = await this.request('POST', '/mcp', body, accept)
    const { result } = parseObject(text.startsWith('{') ? text : text.slice(text.indexOf('{')).split('\n')[0])
    const content = (result as { readonly structuredContent?: Readonly<Record<string, unknown>> })?.structuredContent
    if (content === undefined) this.count(`${name} without a result`)
    return content ?? {}
  }

  private async uploadFile(): Promise<void> {
    const scope = this.tenant()
    const form = new FormData()
    const text = Array.from({ length: 20 }, () => this.say()).join('\n')
    form.set('file', new File([text], `note${Math.floor(this.random() * 1e6)}.txt`, { type: 'text/plain' }))
    const encoded = new Response(form)
    const headers = { 'content-type': encoded.headers.get('content-type') ?? '' }
    const path = `/api/scopes/${scope}/files`
    const { id } = parseObject(await this.request('POST', path, Buffer.from(await encoded.arrayBuffer()), headers))
    if (typeof id === 'string') this.files.push({ scope, id })
    const oldest = this.files.length > maxKept / 10 ? this.files.shift() : undefined
    if (oldest !== undefined) await this.request('DELETE', `/api/scopes/${oldest.scope}/files/${oldest.id}`)
  }

  private async forget(): Promise<void> {
    await this.useSession(async (session) => {
      session.messages = []
      await this.request('POST', '/api/forget', { key: session.key })
    })
  }

  private async endSession(): Promise<void> {
    const index = Math.floor(this.random() * this.open.length)
    if (this.open[index]?.isBusy !== false) return
    const [session] = this.open.splice(index, 1)
    if (session !== undefined) await this.request('DELETE', `/api/sessions/${session.key}`)
  }

  private async readSession(): Promise<void> {
    await this.useSession(async ({ key }) => {
      await this.request('GET', `/api/sessions/${key}/messages?limit=50`)
      await this.request('GET', `/api/sessions/${key}/context?q=${encodeURIComponent(this.say().slice(0, 40))}`)
      await this.request('GET', `/api/sessions/${key}/receipts`)
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
    const oldest = this.open.length > maxOpenSessions ? this.open.shift() : undefined
    // Half of the sessions are never ended: stored sessions add up, memory must not.
    if (oldest !== undefined && this.random() < 0.5) await this.request('DELETE', `/api/sessions/${oldest.key}`)
  }

  private createSession(): SoakSession {
    const isInRam = this.random() < 0.3
    const session: SoakSession = {
      key: `${this.tenant()}:s${this.sessionCount++}`,
      headers: isInRam ? { 'x-threadkeep-template': 'ram' } : {},
      messages: [],
      turns: 0,
      isBusy: false,
    }
    this.open.push(session)
    return session
  }

  private chat({ key, headers }: SoakSession, body: object): Promise<string> {
    return this.request('POST', `/v1/${key}/chat/completions`, { model: 'soak', ...body }, headers)
  }

  private async request(
    method: 'GET' | 'POST' | 'DELETE',
    path: string,
    body?: object,
    headers: Readonly<Record<string, string>> = {},
    signal?: AbortSignal,
  ): Promise<string> {
    const response = await this.pool.request({
      ...{ method, path },
      headers: { ...(body === undefined ? {} : { 'content-type': 'application/json' }), ...headers },
      body: body === undefined ? null : Buffer.isBuffer(body) ? body : JSON.stringify(body),
      ...(signal !== undefined && { signal }),
    })
    const text = await response.body.text()
    this.count(`${Math.floor(response.statusCode / 100)}xx`)
    return text
  }

  private count(name: string): void {
    this.counts[name] = (this.counts[name] ?? 0) + 1
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
