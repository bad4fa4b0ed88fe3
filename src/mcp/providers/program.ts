import { type ChildProcessByStdio, spawn } from 'node:child_process'
import { once } from 'node:events'
import type { Readable, Writable } from 'node:stream'
import { setTimeout as wait } from 'node:timers/promises'
import { type JSONRPCMessage, ReadBuffer, serializeMessage, type Transport } from '@modelcontextprotocol/client'
import { getDefaultEnvironment } from '@modelcontextprotocol/client/stdio'
import type { Millis } from '../../domain/entry.ts'
import { most, type ProviderConfig } from './config.ts'

type Child = ChildProcessByStdio<Writable, Readable, null>

/** How long a program may take to end: when it is no longer spoken to, and when it is told to. */
const grace: Readonly<Record<'asked' | 'told', Millis>> = { asked: 2_000, told: 500 }

/** Programs have a group of their own, so that whatever a starter such as a shell has started ends with it. */
const isGrouped = process.platform !== 'win32'

/** A program that is spoken to over its standard input and output, and that can be made to end with all it has started. */
export class Program implements Transport {
  onmessage?: (message: JSONRPCMessage) => void
  onerror?: (error: Error) => void
  onclose?: () => void
  readonly #config: Extract<ProviderConfig, { command: string }>
  readonly #read = new ReadBuffer({ maxBufferSize: most.bytes })
  #child: Child | undefined
  #exit: Promise<unknown> = Promise.resolve()

  constructor(config: Extract<ProviderConfig, { command: string }>) {
    this.#config = config
  }

  async start(): Promise<void> {
    const { command, args = [], env = {} } = this.#config
    const child = spawn(command, args, {
      env: { ...getDefaultEnvironment(), ...env },
      stdio: ['pipe', 'pipe', 'ignore'],
      detached: isGrouped,
      windowsHide: true,
    })
    const fault = (error: Error): void => this.onerror?.(error)
    for (const one of [child, child.stdin, child.stdout]) one.on('error', fault)
    child.stdout.on('data', (chunk: Buffer) => this.#take(chunk))
    child.on('close', () => this.onclose?.())
    if (child.pid !== undefined) this.#follow(child)
    await once(child, 'spawn')
  }

  #follow(child: Child): void {
    const exited = new Promise((resolve) => child.once('exit', resolve))
    this.#child = child
    this.#exit = exited.then(() => {
      // Its number is still that of the group if there is anybody left in it.
      this.#signal('SIGKILL')
      this.#child = undefined
    })
  }

  async send(message: JSONRPCMessage): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    if (this.#child === undefined) throw new Error('it has ended')
    this.#child.stdin.write(serializeMessage(message), (error) => (error ? reject(error) : resolve()))
    return promise
  }

  /** Ends it as one that works is ended: it is no longer spoken to. */
  close(): Promise<void> {
    return this.end(false)
  }

  /** Ends it and waits until it is gone; a faulty one is not given the time to see by itself that nobody speaks to it. */
  async end(isFaulty: boolean): Promise<void> {
    const child = this.#child
    if (child === undefined) return
    child.stdin.end()
    if (isFaulty || !(await this.#isGoneIn(grace.asked))) {
      this.#signal('SIGTERM')
      if (!(await this.#isGoneIn(grace.told))) this.#signal('SIGKILL')
    }
    await this.#exit
    // Whoever left the group may still hold the other end.
    child.stdout.destroy()
  }

  #take(chunk: Buffer): void {
    try {
      this.#read.append(chunk)
    } catch (error) {
      this.onerror?.(error as Error)
      void this.end(true)
      return
    }
    for (;;) {
      try {
        const message = this.#read.readMessage()
        if (message === null) return
        this.onmessage?.(message)
      } catch (error) {
        this.onerror?.(error as Error)
      }
    }
  }

  #isGoneIn(time: Millis): Promise<boolean> {
    return Promise.race([this.#exit.then(() => true), wait(time, false, { ref: false })])
  }

  #signal(signal: 'SIGTERM' | 'SIGKILL'): void {
    const pid = this.#child?.pid
    try {
      if (pid !== undefined) process.kill(isGrouped ? -pid : pid, signal)
    } catch {
      // nobody is left
    }
  }
}
