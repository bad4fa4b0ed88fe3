import { mkdirSync, writeFileSync } from 'node:fs'
import { delimiter, dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Agent, Workspace } from './agent.ts'
import { type Command, run, start } from './processes.ts'

const packages = fileURLToPath(new URL('node_modules/', import.meta.url))
const platform = `${process.platform}-${process.arch}`
const apiKey = 'sk-agents-0'
const model = 'test-model'

/** A command with nothing of the caller's environment but the path, so that no other configuration is found. */
function command(
  { home, project }: Workspace,
  file: string,
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Command {
  const path = [dirname(process.execPath), process.env.PATH].join(delimiter)
  const script = /\.c?js$/.test(file)
  return {
    command: script ? process.execPath : join(packages, file),
    args: script ? [join(packages, file), ...args] : args,
    env: { HOME: home, PATH: path, LANG: 'C.UTF-8', TERM: 'dumb', DO_NOT_TRACK: '1', ...env },
    cwd: project,
  }
}

const writeConfig = (home: string, path: string, text: string): void => {
  mkdirSync(dirname(join(home, path)), { recursive: true })
  writeFileSync(join(home, path), text)
}

const runAll = async (...commands: readonly Command[]): Promise<void> => {
  for (const command of commands) await run(command)
}

const readText = (stdout: string): string => stdout.trim()

const claude = (workspace: Workspace, ...args: readonly string[]): Command =>
  command(
    workspace,
    `@anthropic-ai/claude-code-${platform}/claude`,
    ['-p', '--model', 'claude-sonnet-4-5', '--dangerously-skip-permissions', ...args],
    {
      ANTHROPIC_BASE_URL: workspace.baseUrl,
      ANTHROPIC_API_KEY: apiKey,
      DISABLE_AUTOUPDATER: '1',
      DISABLE_TELEMETRY: '1',
      DISABLE_ERROR_REPORTING: '1',
      // Allows the flag above for root, as in containers.
      IS_SANDBOX: '1',
    },
  )

const claudeCode: Agent = {
  name: 'Claude Code',
  package: '@anthropic-ai/claude-code',
  protocol: 'anthropic',
  resumes: true,
  ask: (workspace, prompt, resume) => claude(workspace, ...(resume ? ['--continue'] : []), prompt),
  readAnswer: readText,
  compact: (workspace) => runAll(claude(workspace, '--continue', '/compact')),
  calls: {
    readFile: (path) => ({ id: 'toolu_1', name: 'Read', input: { file_path: path } }),
    readPdf: (path) => ({ id: 'toolu_1', name: 'Read', input: { file_path: path } }),
    startSubagent: (prompt) => ({
      id: 'toolu_1',
      name: 'Agent',
      input: { description: 'Look it up', prompt, subagent_type: 'general-purpose', run_in_background: false },
    }),
  },
}

const codexCommand = (workspace: Workspace, ...args: readonly string[]): Command =>
  command(
    workspace,
    '@openai/codex/bin/codex.js',
    ['exec', '--skip-git-repo-check', '--dangerously-bypass-approvals-and-sandbox', ...args],
    { THREADKEEP_AGENTS_KEY: apiKey },
  )

const codex: Agent = {
  name: 'Codex',
  package: '@openai/codex',
  protocol: 'openai',
  prepare: ({ home, baseUrl }) =>
    writeConfig(
      home,
      '.codex/config.toml',
      `model = "gpt-5"
model_provider = "threadkeep"
check_for_update_on_startup = false
[model_providers.threadkeep]
name = "threadkeep"
base_url = "${baseUrl}"
env_key = "THREADKEEP_AGENTS_KEY"
wire_api = "responses"
[analytics]
enabled = false
`,
    ),
  resumes: true,
  ask: (workspace, prompt, resume) => codexCommand(workspace, ...(resume ? ['resume', '--last'] : []), prompt),
  readAnswer: readText,
  // Compacts when the session is over 20 tokens, which every session is.
  askCompacted: (workspace, prompt) =>
    codexCommand(workspace, 'resume', '--last', '-c', 'model_auto_compact_token_limit=20', prompt),
  calls: {
    readFile: (path) => ({ id: 'call_1', name: 'exec_command', input: { cmd: `cat ${path}` } }),
  },
}

const opencodeCommand = (workspace: Workspace, ...args: readonly string[]): Command =>
  command(workspace, `opencode-${platform}/bin/opencode`, args, {
    OPENCODE_DISABLE_AUTOUPDATE: '1',
    OPENCODE_DISABLE_MODELS_FETCH: '1',
    OPENCODE_DISABLE_LSP_DOWNLOAD: '1',
  })

const opencode: Agent = {
  name: 'opencode',
  package: 'opencode-ai',
  protocol: 'openai',
  prepare: ({ home, baseUrl }) =>
    writeConfig(
      home,
      '.config/opencode/opencode.json',
      JSON.stringify({
        autoupdate: false,
        share: 'disabled',
        model: `threadkeep/${model}`,
        provider: {
          threadkeep: {
            npm: '@ai-sdk/openai-compatible',
            name: 'threadkeep',
            options: { baseURL: baseUrl, apiKey },
            models: {
              [model]: {
                name: model,
                attachment: true,
                modalities: { input: ['text', 'image', 'pdf'], output: ['text'] },
                limit: { context: 200_000, output: 8_000 },
              },
            },
          },
        },
      }),
    ),
  resumes: true,
  ask: (workspace, prompt, resume) => opencodeCommand(workspace, 'run', ...(resume ? ['--continue'] : []), prompt),
  readAnswer: readText,
  compact: compactWithOpencode,
  calls: {
    readFile: (path) => ({ id: 'call_1', name: 'read', input: { filePath: path } }),
    readPdf: (path) => ({ id: 'call_1', name: 'read', input: { filePath: path } }),
    startSubagent: (prompt) => ({
      id: 'call_1',
      name: 'task',
      input: { description: 'Look it up', prompt, subagent_type: 'general' },
    }),
  },
}

/** opencode compacts on request of its HTTP clients only. */
async function compactWithOpencode(workspace: Workspace): Promise<void> {
  const server = await start(opencodeCommand(workspace, 'serve', '--port', '0'), /listening on (http\S+)/)
  try {
    const query = `?directory=${encodeURIComponent(workspace.project)}`
    const sessions = (await (
      await fetch(`${server.match}/session${query}`, { signal: AbortSignal.timeout(30_000) })
    ).json()) as readonly {
      readonly id: string
    }[]
    await fetch(`${server.match}/session/${sessions[0]?.id}/summarize${query}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ providerID: 'threadkeep', modelID: model }),
      signal: AbortSignal.timeout(30_000),
    })
  } finally {
    server.stop()
  }
}

const qwen = (workspace: Workspace, ...args: readonly string[]): Command =>
  command(
    workspace,
    '@qwen-code/qwen-code/cli-entry.js',
    ['--auth-type', 'openai', '--yolo', '--chat-recording', ...args],
    {
      OPENAI_BASE_URL: workspace.baseUrl,
      OPENAI_API_KEY: apiKey,
      OPENAI_MODEL: model,
      QWEN_CODE_SUPPRESS_YOLO_WARNING: '1',
    },
  )

const qwenCode: Agent = {
  name: 'Qwen Code',
  package: '@qwen-code/qwen-code',
  protocol: 'openai',
  prepare: ({ home }) =>
    writeConfig(
      home,
      '.qwen/settings.json',
      JSON.stringify({
        general: { disableAutoUpdate: true, enableAutoUpdate: false },
        privacy: { usageStatisticsEnabled: false },
        telemetry: { enabled: false },
      }),
    ),
  resumes: true,
  ask: (workspace, prompt, resume) => qwen(workspace, ...(resume ? ['--continue'] : []), prompt),
  readAnswer: readText,
  compact: (workspace) => runAll(qwen(workspace, '--continue', '/compress')),
  calls: {
    readFile: (path) => ({ id: 'call_1', name: 'read_file', input: { file_path: path } }),
    readPdf: (path) => ({ id: 'call_1', name: 'read_file', input: { file_path: path } }),
    startSubagent: (prompt) => ({
      id: 'call_1',
      name: 'agent',
      input: { description: 'Look it up', prompt, subagent_type: 'general-purpose', run_in_background: false },
    }),
  },
}

const continueCommand = (workspace: Workspace, ...args: readonly string[]): Command =>
  command(
    workspace,
    '@continuedev/cli/dist/cn.js',
    ['--config', join(workspace.home, '.continue/config.yaml'), '--auto', ...args],
    { CONTINUE_METRICS_ENABLED: '0', CONTINUE_CLI_ENABLE_TELEMETRY: '0', CONTINUE_CLI_AUTO_UPDATED: '1' },
  )

const continueCli: Agent = {
  name: 'Continue',
  package: '@continuedev/cli',
  protocol: 'openai',
  prepare: ({ home, baseUrl }) =>
    writeConfig(
      home,
      '.continue/config.yaml',
      `name: agents
version: 1.0.0
schema: v1
models:
  - name: ${model}
    provider: openai
    model: ${model}
    apiBase: ${baseUrl}
    apiKey: ${apiKey}
    roles: [chat]
    capabilities: [tool_use]
`,
    ),
  resumes: true,
  ask: (workspace, prompt, resume) => continueCommand(workspace, ...(resume ? ['--resume'] : []), '-p', prompt),
  readAnswer: readText,
  compact: (workspace) => runAll(continueCommand(workspace, '--resume', '-p', '/compact')),
  calls: {
    readFile: (path) => ({ id: 'call_1', name: 'Read', input: { filepath: path } }),
  },
}

const clineCommand = (workspace: Workspace, ...args: readonly string[]): Command =>
  command(workspace, `@cline/cli-${platform}/bin/cline`, args, { CLINE_NO_AUTO_UPDATE: '1' })

const cline: Agent = {
  name: 'Cline',
  package: 'cline',
  protocol: 'openai',
  prepare: async (workspace) => {
    const provider = ['-p', 'openai-compatible', '-k', apiKey, '-m', model, '-b', workspace.baseUrl]
    await run(clineCommand(workspace, 'auth', ...provider))
  },
  // With --id of a session it wants a terminal.
  resumes: false,
  ask: (workspace, prompt) => clineCommand(workspace, '--json', prompt),
  readAnswer: (stdout) => {
    const events = stdout.split('\n').flatMap((line) => (line.startsWith('{') ? [JSON.parse(line)] : []))
    return String(events.findLast(({ type }) => type === 'run_result')?.text ?? stdout).trim()
  },
  calls: {
    readFile: (path) => ({ id: 'call_1', name: 'read_files', input: { files: [{ path }] } }),
    startSubagent: (prompt) => ({
      id: 'call_1',
      name: 'spawn_agent',
      input: { systemPrompt: 'You look things up.', task: prompt },
    }),
  },
}

export const codingAgents: readonly Agent[] = [claudeCode, codex, opencode, qwenCode, continueCli, cline]
