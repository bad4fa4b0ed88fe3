import { execFileSync } from 'node:child_process'
import { join } from 'node:path'

/** Creates a certificate for `localhost` that signs itself, and its key, as files of a folder. */
export function createCertificate(folder: string): { readonly certificate: string; readonly secret: string } {
  const [certificate, secret] = [join(folder, 'tls.crt'), join(folder, 'tls.key')]
  const key = ['-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '1']
  const name = ['-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost']
  execFileSync('openssl', ['req', ...key, ...name, '-keyout', secret, '-out', certificate], { stdio: 'ignore' })
  return { certificate, secret }
}
