{-# LANGUAGE OverloadedStrings #-}

-- | serve-hello and serve-board with warp: the servers that rival-load measures.
--
-- Invariants: a board is a persistent tree behind a TVar, as in the document, and each request is one transaction; nothing is
-- kept; a message keeps its time as text, so that a read formats nothing; the server prints its port first and ends with
-- its input.
module Main (main) where

import Control.Concurrent (forkIO)
import Control.Concurrent.STM
import qualified Data.ByteString.Builder as Builder
import qualified Data.ByteString.Char8 as Bytes
import qualified Data.ByteString.Lazy as Lazy
import qualified Data.Text as Text
import Network.HTTP.Types
import Network.Socket
import Network.Wai
import Network.Wai.Handler.Warp (defaultSettings, runSettingsSocket)
import System.Environment (getArgs)
import System.Exit (exitFailure)
import System.Info (compilerVersion)
import Data.Version (showVersion)
import System.IO

import qualified Board
import Page (page)

main :: IO ()
main = getArgs >>= run

run :: [String] -> IO ()
run ["--version"] = putStrLn ("warp, GHC " ++ showVersion compilerVersion)
run ["serve-hello", _] = serve hello
run ["serve-board", _] = newTVarIO mempty >>= serve . board
run _ = do
  hPutStrLn stderr "Call it as serve-hello or serve-board with workers=N, or with --version."
  exitFailure

serve :: Application -> IO ()
serve application = do
  listener <- socket AF_INET Stream defaultProtocol
  bind listener (SockAddrInet 0 (tupleToHostAddress (127, 0, 0, 1)))
  listen listener 4096
  port <- socketPort listener
  _ <- forkIO (runSettingsSocket defaultSettings listener application)
  putStrLn ("port " ++ show port)
  hFlush stdout
  input <- Bytes.hGetContents stdin
  Bytes.length input `seq` pure ()

hello :: Application
hello _ respond = respond (answer status200 "text/plain" "hello, world\n")

board :: Board.Boards -> Application
board boards request respond = case (requestMethod request, pathInfo request) of
  ("GET", ["api", "boards"]) -> atomically (Board.list boards) >>= told status200
  ("POST", ["api", "boards"]) -> withBody (\new -> Just <$> (Board.now >>= atomically . Board.create boards new))
  ("GET", ["api", "boards", name]) -> atomically (Board.shown boards name) >>= maybe missing (told status200)
  ("POST", ["api", "boards", name, "messages"]) ->
    withBody (\said -> Board.now >>= atomically . Board.write boards name said)
  ("PUT", ["api", "boards", name, "messages", number]) ->
    withBody (\said -> Board.now >>= atomically . Board.edit boards name (read (Text.unpack number)) said)
  ("GET", ["b", name]) ->
    atomically (Board.shown boards name) >>= maybe missing (respond . answer status200 "text/html; charset=utf-8" . page)
  _ -> missing
  where
    told status value = respond (answer status "application/json" (Board.json value))
    missing = respond (answer status404 "text/plain" "Nothing is there.\n")
    withBody act = do
      body <- strictRequestBody request
      case Board.parse body of
        Nothing -> respond (answer status400 "text/plain" "Nothing is said.\n")
        Just said -> act said >>= maybe missing (told status)
    status = if requestMethod request == "POST" then status201 else status200

-- | With its length, because warp would send it in chunks otherwise.
answer :: Status -> Bytes.ByteString -> Builder.Builder -> Response
answer status kind builder = responseLBS status headers body
  where
    body = Builder.toLazyByteString builder
    headers = [(hContentType, kind), (hContentLength, Bytes.pack (show (Lazy.length body)))]
