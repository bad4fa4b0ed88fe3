import type { Call } from '../server/clients/responseFormats.ts'
import type { Command } from './processes.ts'

/** Folders and base URL of one run of an agent. */
export type Workspace = {
  readonly home: string
  /** Project folder. It has `notes.txt` and `report.pdf`. */
  readonly project: string
  /** Base URL with the key of the session, as in `http://127.0.0.1:4848/v1/demo:ann`. */
  readonly baseUrl: string
}

/** Headless use of a coding agent. */
export type Agent = {
  readonly name: string
  readonly package: string
  readonly protocol: 'openai' | 'anthropic'
  /** Writes configuration files or runs commands before the first prompt. */
  prepare?(workspace: Workspace): Promise<void> | void
  /** True if it continues a session without a terminal. */
  readonly resumes: boolean
  /** Command for a prompt; `resume` continues the last session of the workspace. */
  ask(workspace: Workspace, prompt: string, resume: boolean): Command
  /** Reads the answer from the standard output. */
  readAnswer(stdout: string): string
  /** Compacts the last session. */
  compact?(workspace: Workspace): Promise<void>
  /** Continues the last session, which it compacts first. */
  askCompacted?(workspace: Workspace, prompt: string): Command
  /** Tool calls of the model. */
  readonly calls: {
    readFile(path: string): Call
    readPdf?(path: string): Call
    startSubagent?(prompt: string): Call
  }
}
