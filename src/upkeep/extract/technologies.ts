/** Technologies by the slot they fill: a new choice in the same slot supersedes the old one. Lower case, no accents. */
const technologies: Readonly<Record<string, string>> = {
  database:
    'postgres|postgresql|mysql|mariadb|sqlite|mongodb|mongo|oracle db|sql server|mssql|cockroachdb|dynamodb|cassandra|firestore|supabase|couchdb|duckdb|clickhouse|neo4j|planetscale|bigquery|snowflake',
  cache: 'redis|memcached|valkey|dragonfly',
  message_queue: 'rabbitmq|kafka|nats|sqs|celery|bullmq|pubsub|activemq',
  search_engine: 'elasticsearch|opensearch|meilisearch|typesense|solr|algolia',
  programming_language:
    'typescript|javascript|python|rust|golang|go|java|kotlin|swift|ruby|php|c\\+\\+|c#|scala|elixir|haskell|clojure|julia|perl|lua|dart|zig|fortran|cobol|matlab',
  runtime: 'node(?:\\.?js)?|deno|jvm|\\.net|dotnet',
  frontend_framework:
    'react|vue|svelte|sveltekit|angular|next\\.?js|nuxt|solidjs|remix|astro|ember|preact|qwik|htmx|jquery',
  backend_framework:
    'express|fastify|nestjs|hono|koa|django|flask|fastapi|rails|ruby on rails|laravel|symfony|spring(?: boot)?|asp\\.net|phoenix|gin|actix|axum',
  mobile_framework: 'flutter|react native|swiftui|ionic|xamarin|jetpack compose|expo',
  css_framework: 'tailwind(?: ?css)?|bootstrap|bulma|material ui|mui|chakra ui|sass|scss|styled-components',
  orm: 'prisma|drizzle|typeorm|sequelize|sqlalchemy|hibernate|kysely|knex',
  test_framework: 'jest|vitest|mocha|pytest|junit|rspec|playwright|cypress|selenium|unittest',
  bundler: 'webpack|vite|rollup|esbuild|parcel|turbopack',
  package_manager: 'npm|pnpm|yarn|bun|poetry|conda|pip|uv|cargo|maven|gradle',
  linter: 'eslint|biome|prettier|ruff|black|rubocop|pylint|standardjs',
  editor:
    'vs ?code|visual studio code|vim|neovim|emacs|intellij(?: idea)?|sublime(?: text)?|pycharm|webstorm|zed|cursor|notepad\\+\\+|nano|xcode|android studio',
  operating_system:
    'linux|ubuntu|debian|fedora|arch linux|macos|windows(?: 1[01])?|freebsd|alpine|nixos|red hat|centos',
  browser: 'firefox|chrome|safari|brave|microsoft edge',
  shell: 'bash|zsh|fish|powershell',
  cloud:
    'aws|amazon web services|azure|google cloud|gcp|digitalocean|hetzner|heroku|vercel|netlify|cloudflare|fly\\.io|render\\.com|railway',
  containers: 'docker|podman|kubernetes|k8s|docker swarm|nomad',
  ci: 'github actions|gitlab ci|jenkins|circleci|travis|buildkite|azure pipelines|teamcity',
  infrastructure_tool: 'terraform|pulumi|ansible|cloudformation|opentofu|chef|puppet',
  version_control: 'git|mercurial|subversion|svn|perforce',
  api_style: 'graphql|rest|grpc|trpc|soap|openapi',
  web_server: 'nginx|apache|caddy|traefik|haproxy',
  authentication: 'auth0|clerk|keycloak|okta|oauth2?|jwt|saml|cognito|passport\\.js',
  payment_provider: 'stripe|paypal|adyen|mollie|square|klarna',
  chat_tool: 'slack|microsoft teams|discord|mattermost|telegram|whatsapp|signal',
  issue_tracker: 'jira|linear|trello|asana|github issues|monday\\.com',
  notes_app: 'notion|obsidian|evernote|onenote|confluence',
  license: 'mit license|apache 2\\.0|gpl(?:v[23])?|bsd license',
}

/** Ordinary words, which are technologies only with a capital. */
const ordinaryWords =
  /^(?:go|express|rest|render|cursor|signal|linear|slack|edge|spring|flask|chef|puppet|gin|fish|remix|square|swift|rails|black|dart|julia|phoenix|brave|safari|ember|soap|nano|parcel|nomad|caddy|cargo|poetry|expo|clerk|notion|windows|bun|perl)$/

const slots = Object.entries(technologies).map(
  ([slot, names]) => [slot, new RegExp(`(?<![\\w.@/-])(?:${names})(?![\\w/@]|-[a-z])`, 'i')] as const,
)

/** Technology of a phrase with its slot. */
export type Technology = { readonly slot: string; readonly name: string; readonly index: number }

/**
 * Finds the first technology in a phrase.
 *
 * @example
 * findTechnology('Postgres for the orders') // { slot: 'database', name: 'Postgres', index: 0 }
 */
export function findTechnology(phrase: string): Technology | undefined {
  let first: Technology | undefined
  for (const [slot, pattern] of slots) {
    const match = pattern.exec(phrase)
    if (match === null || ordinaryWords.test(match[0])) continue
    if (match.index < (first?.index ?? Number.POSITIVE_INFINITY)) first = { slot, name: match[0], index: match.index }
  }
  return first
}
