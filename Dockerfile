# docker build -t threadkeep .
# docker run -p 127.0.0.1:4848:4848 -v threadkeep:/data threadkeep serve --open
# Without --open, the server requires API keys: docker run -v threadkeep:/data threadkeep keys create --scope NAME
FROM node:24-alpine AS build
RUN apk add --no-cache binutils && strip /usr/local/bin/node
WORKDIR /build
COPY package.json package-lock.json ./
RUN npm ci --ignore-scripts
COPY . .
RUN npm run build && npm pack --ignore-scripts && tar -xzf threadkeep-*.tgz

# Alpine with the Node binary alone: npm, yarn and headers are half of the official image.
FROM alpine:3.22
RUN apk add --no-cache libstdc++ && adduser -D -H -u 10001 threadkeep && install -d -o threadkeep /data
COPY --from=build /usr/local/bin/node /usr/local/bin/node
COPY --from=build /build/package /opt/threadkeep
USER threadkeep
WORKDIR /data
VOLUME /data
ENV NODE_ENV=production THREADKEEP_HOST=0.0.0.0 THREADKEEP_STORE=sqlite:/data/threadkeep.db
EXPOSE 4848
HEALTHCHECK --interval=10s --timeout=3s --start-period=10s \
  CMD wget -q -O /dev/null http://127.0.0.1:4848/healthz || exit 1
# Signals reach Node itself, so that a stop finishes the requests in progress.
ENTRYPOINT ["node", "/opt/threadkeep/dist/cli/main.js"]
CMD ["serve"]
