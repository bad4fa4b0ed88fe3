// Checks the Node version. CommonJS and old syntax, so that old versions can run it.
// A checkout runs TypeScript sources directly, which needs a newer Node than the built package.
const required = [22, 18]
const [major, minor] = process.versions.node.split('.').map(Number)

if (major < required[0] || (major === required[0] && minor < required[1])) {
  console.error(
    `Threadkeep's sources need Node ${required.join('.')} or newer; this is Node ${process.versions.node}.\n` +
      'Run "npm ci": it installs Node 24 for npm scripts and npx. If you have run it, allow the install script of the package "node".',
  )
  process.exit(1)
}
