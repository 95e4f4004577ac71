-- | @channel@ and @select@: integers through an @MVar@, a @Chan@ or a @TBQueue@, and a choice of
-- @orElse@ between several of them.
module Channel (Kind (..), channel, select) where

import Control.Concurrent.Chan (newChan, readChan, writeChan)
import Control.Concurrent.MVar (newEmptyMVar, putMVar, takeMVar)
import Control.Concurrent.STM
import Control.Monad (forM_, replicateM, replicateM_)

import Measure (printMetrics)
import Team (together)

-- | What a channel does with a message that no receiver waits for.
data Kind = Bounded Int | Unbounded

-- | The two actions of a channel: put a message in, and take one out.
data Ends = Ends (Int -> IO ()) (IO Int)

-- | An @MVar@ has room for one message.
ends :: Kind -> IO Ends
ends (Bounded 1) = do
  slot <- newEmptyMVar
  pure (Ends (putMVar slot) (takeMVar slot))
ends (Bounded room) = do
  queue <- newTBQueueIO (fromIntegral room)
  pure (Ends (atomically . writeTBQueue queue) (atomically (readTBQueue queue)))
ends Unbounded = do
  chan <- newChan
  pure (Ends (writeChan chan) (readChan chan))

channel :: Int -> Int -> Kind -> IO ()
channel senders messages kind = do
  Ends put get <- ends kind
  let send = forM_ [1 .. messages] $ \number -> put $! number
      receive = replicateM_ (senders * messages) get
  printPerMessage (senders * messages) =<< together (receive : replicate senders send)

printPerMessage :: Int -> Double -> IO ()
printPerMessage total elapsed =
  printMetrics [("ns_per_message", elapsed / fromIntegral total)]

-- | A channel inside a transaction.
data Branch = Branch (Int -> STM ()) (STM Int)

-- | A @TMVar@ has room for one message.
branch :: Kind -> IO Branch
branch (Bounded 1) = do
  slot <- newEmptyTMVarIO
  pure (Branch (putTMVar slot) (takeTMVar slot))
branch (Bounded room) = do
  queue <- newTBQueueIO (fromIntegral room)
  pure (Branch (writeTBQueue queue) (readTBQueue queue))
branch Unbounded = do
  queue <- newTQueueIO
  pure (Branch (writeTQueue queue) (readTQueue queue))

select :: Int -> Int -> Kind -> IO ()
select branches messages kind = do
  channels <- replicateM branches (branch kind)
  let total = branches * messages
      choice = foldr1 orElse [get | Branch _ get <- channels]
      receive = replicateM_ total (atomically choice)
      send (Branch put _) = forM_ [1 .. messages] $ \number -> atomically (put $! number)
  printPerMessage total =<< together (receive : map send channels)
